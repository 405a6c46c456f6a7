// A compare and exchange for a word that only one thread writes, its signal handlers included.
// Strongest property: atomic for a handler that interrupts it anywhere, without the lock prefix
// that a word of several threads needs: that costs 5 ns more, since it waits for all stores before
// it.
// (`now_ns` and `now_ns_locked` in bench/record.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9 {

// Stores `desired` if the word is `*expected`, else sets `*expected` to what it is. Whether it did.
// Other threads must neither write nor read the word. Async-signal-safe.
inline bool exchange_on_thread(std::uint64_t& word, std::uint64_t* expected,
                               std::uint64_t desired) noexcept {
#if defined(__x86_64__)
  // One instruction: no handler comes in between.
  bool is_done;
  asm volatile("cmpxchgq %3, %1"
               : "=@ccz"(is_done), "+m"(word), "+a"(*expected)
               : "r"(desired)
               : "cc");
  return is_done;
#else
  return __atomic_compare_exchange_n(&word, expected, desired, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED);
#endif
}

}  // namespace dial9
