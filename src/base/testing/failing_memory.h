// Memory that ends when a test says so: operator new of the whole test program. Strongest property:
// it counts what is held to the piece, so that one that isn't given back is seen; also under
// AddressSanitizer, while ThreadSanitizer has an operator new of its own, which is said.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace dial9::testing {

bool can_memory_fail();
inline constexpr const char* kMemoryIsOthers = "ThreadSanitizer has its own operator new";

// What operator new finds on the threads that take part. Outlives their part.
class FailingMemory {
 public:
  enum class Ends : std::uint8_t { kOnce, kForGood };

  // The calling thread takes part until the next call, by nullptr: in none.
  static void take_part(FailingMemory* in);

  // From now on `pieces` are given, and the next one isn't. Any thread.
  void end_after(std::uint64_t pieces, Ends ends) {
    ends_.store(ends, std::memory_order_relaxed);
    left_.store(pieces, std::memory_order_relaxed);
  }
  // There is memory again. True: some was refused since end_after().
  bool restore() {
    left_.store(kEnough, std::memory_order_relaxed);
    return was_refused_.exchange(false, std::memory_order_relaxed);
  }

  bool refuses();  // for operator new

 private:
  static constexpr std::uint64_t kEnough = ~std::uint64_t{0};
  // Counters of a test that tells its threads of each other by other means: relaxed.
  std::atomic<std::uint64_t> left_{kEnough};
  std::atomic<Ends> ends_{Ends::kOnce};
  std::atomic<bool> was_refused_{false};
};

// Pieces that all threads got by operator new and haven't given back; not those that are aligned
// beyond what malloc does.
std::int64_t held_pieces();

// Where memory may end in a run that took about `so_far` pieces: each place at first, then a share
// of them.
constexpr std::uint64_t next_end(std::uint64_t so_far) { return so_far + 1 + so_far / 24; }

}  // namespace dial9::testing
