// Does this kernel deliver the signal of a thread's CPU timer without interrupting a system call?
// Strongest property: what isn't known to is taken not to. Spec: docs/spec/cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace dial9::internal {

// `machine` and `release` as uname() has them. Empty: it does (Linux 5.9 and later on x86-64 work
// such timers off on the way to user mode); else why not, with the cure.
std::string interruption_risk(std::string_view machine, std::string_view release);
// The same of the kernel that runs.
std::string interruption_risk_here();

}  // namespace dial9::internal
