// The exit codes of `dial9`, the same for every verb. They are documented in --help and stable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::cli {

enum ExitCode : int {
  kOk = 0,              // read to the end; also where nothing of what was asked for is in it
  kFindings = 1,        // diagnose: a finding at or above --fail-on; doctor: something is wrong
  kUsage = 2,           // the command line is wrong
  kUnreadable = 3,      // an input isn't there, isn't a trace, or nothing in it could be read
  kPartlyReadable = 4,  // read up to some point; what was read is shown
  kOutputLost = 5,      // the output couldn't be written, for instance onto a full disk
  kInternal = 6,        // a fault of dial9's own; out of memory
};

inline constexpr const char* kExitCodeHelp =
    "Exit codes: 0 fine, also where a trace was read and has nothing of what was asked for (a "
    "note\n"
    "says so); 1 a finding at or above --fail-on (diagnose), something wrong (doctor); 2 wrong\n"
    "usage; 3 an input or a process is missing, unreadable, or no trace; 4 an input could be read\n"
    "in part only (what was read is shown); 5 the output couldn't be written; 6 a fault of "
    "dial9's\n"
    "own, or out of memory.";

}  // namespace dial9::cli
