// The exit codes of `dial9`, the same for every verb. They are documented in --help and stable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::cli {

enum ExitCode : int {
  kOk = 0,
  kFindings = 1,        // diagnose: a finding at or above --fail-on; doctor: something is wrong
  kUsage = 2,           // the command line is wrong
  kUnreadable = 3,      // an input isn't there, isn't a trace, or nothing in it could be read
  kPartlyReadable = 4,  // read up to some point; what was read is shown
  kOutputLost = 5,      // the output couldn't be written, for instance onto a full disk
  kInternal = 6,        // a fault of dial9's own; out of memory
};

inline constexpr const char* kExitCodeHelp =
    "Exit codes: 0 fine; 1 a finding at or above --fail-on (diagnose), something wrong (doctor);\n"
    "2 wrong usage; 3 an input or a process is missing, unreadable, or no trace; 4 an input could\n"
    "be read in part only (what was read is shown); 5 the output couldn't be written; 6 a fault\n"
    "of dial9's own.";

}  // namespace dial9::cli
