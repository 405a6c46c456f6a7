// What the recorder may leave out to keep within the user's budget, in the order in which it goes.
// Strongest property: what a reader needs to know how much is missing is in no class and is never
// shed: losses, rates, runtime metrics, clock pairs, metadata, blocking calls, lock waits. Samples
// come before all classes.
// Spec: docs/spec/recorder.md, "Budget".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dial9::internal {

// In the order of shedding.
enum class ShedClass : std::uint8_t {
  kEvents,  // of the user's own types, each by itself
  kWakes,   // by task: of a task all or none
  kParks,   // a park with its unpark
  kPolls,   // a start with its end, by task
  kSpans,   // an enter with its exit, by task where there is one
  kTasks,   // spawns and terminations, by task
  kCount,
  kNever = kCount,  // not shed
};
inline constexpr std::size_t kShedClasses = static_cast<std::size_t>(ShedClass::kCount);

template <class T>
using PerClass = std::array<T, kShedClasses>;

// Events that one unit of a class stands for: what is counted as shed is units.
inline constexpr PerClass<std::uint32_t> kEventsOfUnit = {1, 1, 2, 2, 2, 1};

// As in RecorderShedEvent and in the status.
constexpr const char* shed_class_name(std::size_t index) {
  constexpr PerClass<const char*> kNames = {"events", "wakes", "parks", "polls", "spans", "tasks"};
  return kNames[index];
}

struct ShedCounts {
  PerClass<std::uint64_t> kept{};  // counted only while something is shed
  PerClass<std::uint64_t> shed{};

  // Of all classes.
  std::uint64_t shed_events() const {
    std::uint64_t sum = 0;
    for (std::size_t c = 0; c < kShedClasses; ++c) sum += shed[c] * kEventsOfUnit[c];
    return sum;
  }
  ShedCounts since(const ShedCounts& before) const {
    ShedCounts difference;
    for (std::size_t c = 0; c < kShedClasses; ++c) {
      difference.kept[c] = kept[c] - before.kept[c];
      difference.shed[c] = shed[c] - before.shed[c];
    }
    return difference;
  }
};

// Samples that can be thinned, in the order in which they are, before any class (StreamSource).
enum class SampleKind : std::uint8_t { kHeap, kCpu, kCount };
inline constexpr std::size_t kSampleKinds = static_cast<std::size_t>(SampleKind::kCount);
template <class T>
using PerSampleKind = std::array<T, kSampleKinds>;

// One in how many units is kept; 1: all.
using KeepOneIn = PerClass<double>;
inline constexpr KeepOneIn kKeepAll = {1, 1, 1, 1, 1, 1};

// Rates that a thread raised while the collector slept (burst_gate.h), and what had been decided
// until then. They lie in the arena, so that a kill leaves them to a recovery.
struct ShedRaise {
  std::uint64_t at_ns = 0;
  KeepOneIn keep_one_in{};
  ShedCounts counts;  // since the process began
};
inline constexpr std::uint32_t kMostRaises = 20;
struct ShedRaises {
  std::uint32_t count = 0;     // of `list`; a release store tells the next one
  std::uint64_t since_ns = 0;  // when the collector told rates last; 0: it sheds nothing
  ShedCounts since_counts;     // what had been decided by then
  std::array<ShedRaise, kMostRaises> list{};
};

}  // namespace dial9::internal
