// What a thread that is blocked in a futex waits for, by who called it: the C library's locks and
// conditions are told apart by the functions in the thread's stack. Strongest property: a futex of
// anybody else's stays a futex. Spec: docs/spec/off_cpu_samples.md, "Causes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dial9::internal {

// Not thread-safe. Looks the functions up when it is made: not in a signal handler.
class FutexCallers {
 public:
  FutexCallers();
  // "lock" or "condition"; "futex": no function of theirs is among the innermost frames (the C
  // library's sem_wait() leaves no frame), or it can't be asked (a static executable). `frames`:
  // leaf first, return addresses.
  std::string_view cause(std::span<const std::uint64_t> frames) const noexcept;

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t end;
    std::string_view cause;
  };
  std::vector<Function> functions_;
};

}  // namespace dial9::internal
