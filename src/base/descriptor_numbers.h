// Descriptors of ours in a process whose host counts on its numbers: that the lowest free one is
// next, that select() takes each, that a low RLIMIT_NOFILE leaves enough. Strongest property: a
// call that can't help changes nothing. Async-signal-safe but for the text.
// Spec: docs/spec/recorder.md, "Descriptors".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dial9 {

// With fewer allowed (RLIMIT_NOFILE), the host needs them more than we do: nothing is opened but
// what recording can't do without.
inline constexpr unsigned kFewDescriptors = 64;
bool are_descriptors_few() noexcept;
// Why something isn't done that needs descriptors, with the cure; empty: they aren't few.
std::string descriptor_shortage();

// A second descriptor, close-on-exec, of the file that `fd` leads to: at least 1,024 where the
// limit is over 2,048, else the highest that is free. -1: there is none, or `fd` is such a one
// already. Where the process has threads, the first one may take the kernel some 10 ms, in which it
// makes room for such a number. Keeps errno.
int duplicate_high(int fd) noexcept;
// The same where the process has made that room before: takes no such time. -1: it hasn't, too.
int duplicate_high_at_once(int fd) noexcept;
// This process never had another thread. False: nobody knows.
bool has_one_thread() noexcept;

}  // namespace dial9
