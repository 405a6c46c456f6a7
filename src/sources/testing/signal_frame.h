// How much of a signal's stack the kernel takes for its own frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dial9::internal::testing {

inline std::uintptr_t g_signal_frame_end = 0;

// As it is on this thread now, by a signal (SIGUSR2) on a large stack. AT_MINSIGSTKSZ is the most
// that it may be: four times as much where the processor has tiles (AMX) that nobody asked for.
inline std::size_t signal_frame_bytes() {
  std::vector<char> memory(256 << 10);
  stack_t large{};
  large.ss_sp = memory.data();
  large.ss_size = memory.size();
  stack_t before{};
  ::sigaltstack(&large, &before);
  struct sigaction note{};
  note.sa_handler = [](int) {
    g_signal_frame_end = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  };
  note.sa_flags = SA_ONSTACK;
  struct sigaction host{};
  ::sigaction(SIGUSR2, &note, &host);
  ::raise(SIGUSR2);
  ::sigaction(SIGUSR2, &host, nullptr);
  ::sigaltstack(&before, nullptr);
  return reinterpret_cast<std::uintptr_t>(memory.data() + memory.size()) - g_signal_frame_end;
}

}  // namespace dial9::internal::testing
