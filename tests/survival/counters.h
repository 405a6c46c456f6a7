// How far each thread of a recording child came, in memory that outlives the child. Each on a line
// of its own. Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace dial9::testing {

inline constexpr std::uint64_t kThreads = 8;

// What a thread's event of this number is called: an interned string that changes now and then.
inline const char* name_of(std::uint64_t number) {
  constexpr const char* kNames[] = {"one", "two", "three", "a longer name than those"};
  return kNames[(number / 7) % 4];
}

struct Counters {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> value;  // calls that have returned, one event each
  };
  Line done[kThreads];   // numbered events, from 0 on
  Line other[kThreads];  // wakes, begins and ends of polls and of spans
  std::atomic<std::uint64_t> is_recording;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace dial9::testing
