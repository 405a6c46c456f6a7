// What the recorder left out to keep within its user's budget: by class and stretch of time, and
// what one kept unit stands for. Strongest property: totals of a class are exact, since the
// recorder counts what it leaves out; where a number can't be made whole (a maximum, a concurrency,
// a delay across two stretches) is_thin() says so. Spec: docs/spec/events_ours.md,
// "RecorderShedEvent".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

// In the order in which a recorder gives them up.
inline constexpr std::array<std::string_view, 6> kShedKinds = {"events", "wakes", "parks",
                                                               "polls",  "spans", "tasks"};
enum class ShedKind : std::uint8_t { kEvents, kWakes, kParks, kPolls, kSpans, kTasks };

class ShedWindows {
 public:
  explicit ShedWindows(const Trace& trace);

  bool empty() const { return is_empty_; }
  // How many units one kept at `at_ns` stands for; 1 where all are kept. O(log n).
  double weight(ShedKind kind, std::uint64_t at_ns) const;
  // Some of the class may be missing between the two moments, inclusive. O(log n).
  bool is_thin(ShedKind kind, std::uint64_t from_ns, std::uint64_t to_ns) const;
  // Whether what was decided by task was decided once for all of it: nothing of the class is
  // missing between the two, or both lie in one stretch, in which of a task all was kept or
  // nothing.
  bool is_whole_for_task(ShedKind kind, std::uint64_t from_ns, std::uint64_t to_ns) const;
  // The trace's losses, and with them each stretch in which wakes, parks or polls are missing: what
  // isn't judged where records are lost isn't where they are thin.
  std::vector<LossRecord> with_losses(const Trace& trace) const;
  // Units left out, as counted. A lower bound where the last stretch isn't told to its end
  // (is_open): the process was killed.
  std::uint64_t shed(ShedKind kind) const { return of(kind).shed; }
  bool is_open(ShedKind kind) const { return of(kind).is_open; }
  // The thinnest that the class was: one in so many kept.
  double most(ShedKind kind) const { return of(kind).most; }
  // "3,210 polls (at times only one in 12.0 was kept)", for each class that has any.
  std::vector<std::string> lines() const;

 private:
  struct Window {
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    double weight;
  };
  struct Class {
    std::vector<Window> windows;  // by time, not overlapping
    std::uint64_t shed = 0;
    double most = 1;
    bool is_open = false;
  };
  const Class& of(ShedKind kind) const { return classes_[static_cast<std::size_t>(kind)]; }

  std::array<Class, kShedKinds.size()> classes_;
  bool is_empty_ = true;
};

}  // namespace dial9::analysis
