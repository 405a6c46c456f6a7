// See lack.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lack.h"

#include <algorithm>

#include "analysis/human.h"

namespace dial9::analysis {

std::string lack_text(const Trace& trace, std::string_view what, std::string_view how) {
  const bool is_ours = std::all_of(trace.inputs.begin(), trace.inputs.end(),
                                   [](const InputFile& input) { return input.tells_loss; });
  return "no " + std::string(what) + " " + in_what_was_read(trace.is_truncated()) +
         (is_ours ? ": record with " : ": dial9 for C++ records them with ") + std::string(how);
}

}  // namespace dial9::analysis
