// The standard output: buffered, and quiet when the reader goes away (`dial9 cat … | head`).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace dial9::cli {

// Call once at start: a closed pipe, and a file beyond the limit of file sizes, is then an error of
// write(), not the end of the process.
void let_writes_fail();

// Writes to the standard output. False: nobody reads it any more, or it can't be written (said once
// on stderr); stop then.
bool write_out(std::string_view text);
// The end of the output. False: see write_out().
bool flush_out();
// Whether output was lost though somebody wanted it: a full disk, not a reader that went away.
bool is_output_lost();

}  // namespace dial9::cli
