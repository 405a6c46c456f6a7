// One line of ours on the host's stderr. Strongest property: it costs the host nothing: no signal
// if nobody reads the pipe, no wait if its reader is slow (the line is left out then), errno kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace dial9 {

// Writes "dial9: {text}\n" in one piece; cut at 4,000 bytes. Any thread; not in a signal handler.
void print_line(std::string_view text) noexcept;

}  // namespace dial9
