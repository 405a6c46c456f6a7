// What a thread that is blocked in a futex waits for, by who called it: the C library's locks and
// conditions are told apart by the functions in the thread's stack. Strongest property: a futex of
// anybody else's stays a futex. Spec: docs/spec/off_cpu_samples.md, "Causes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace dial9::internal {

// Looks the C library's functions up, once. Takes the loader's lock, which a plugin's constructor
// may hold while it waits for us: under no lock of ours, and not on the collector's thread. Any
// other thread, not in a signal handler.
void prepare_futex_callers();

// "lock" or "condition"; "futex": no function of theirs is among the innermost frames (the C
// library's sem_wait() leaves no frame), or they aren't known (not prepared, a static executable, a
// C library older than 2.34). A condition that takes its mutex again waits for a lock. `operation`:
// the call's second argument. `frames`: leaf first, return addresses.
std::string_view futex_cause(std::uint64_t operation,
                             std::span<const std::uint64_t> frames) noexcept;

// The same of a system call of which nobody knows whether it is a futex. "lock", if one of the C
// library's locks is among the innermost frames: a mutex and its kin wait for nothing else. Of a
// condition's it is "condition" or "lock" as the call's second argument says; any other one than
// the C library's own there is another call's, of a signal handler. Empty: none of these.
std::string_view switch_cause(std::uint64_t argument,
                              std::span<const std::uint64_t> frames) noexcept;

}  // namespace dial9::internal
