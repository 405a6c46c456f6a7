// Flame trees of every kind that a trace holds, by one question: time on the CPU, off it, both,
// lock waits, heap; as a tree from the root or the leaf, in order of time, or around one function.
// Strongest property: a tree's total is that of the analysis that it comes from (cpu_flame.h,
// off_cpu.h, heap_flame.h), in each view. Spec: docs/spec/flame.md, "Views".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/flame.h"
#include "analysis/sample_filter.h"
#include "analysis/span_times.h"
#include "analysis/stack_names.h"
#include "analysis/taken_stack.h"
#include "analysis/trace.h"

namespace dial9::analysis {

enum class FlameOf : std::uint8_t {
  kCpu,
  kOffCpu,
  kTime,       // both
  kLocks,      // lock waits with stacks; where the trace has none, waits off the CPU in a lock
  kAllocated,  // in the range
  kLive,       // at its end
};
std::string_view flame_of_name(FlameOf of);  // "cpu", "offcpu", "time", "locks", ...
std::optional<FlameOf> flame_of(std::string_view name);

// What stands above the outermost frames of a wait.
enum class FlameTop : std::uint8_t { kNone, kReason, kCall };

struct FlameQuery {
  FlameOf of = FlameOf::kCpu;
  SampleFilter filter = {};
  bool is_inverted = false;
  // In the order of time each thread has a frame next to the root, and what a wait waited for is
  // its innermost frame. Not of the heap. At most kMostInTime stacks.
  FlameOrder order = FlameOrder::kHeavy;
  FlameTop top = FlameTop::kReason;
  bool has_parked = false;  // with workers that wait for work
  bool counts = false;      // of the heap: allocations, not bytes
  FrameBy frames = FrameBy::kFunction;
  const SpanTimes* span_times = nullptr;  // of the trace; null: made where it is needed
};

inline constexpr std::size_t kMostInTime = std::size_t{1} << 18;
inline constexpr std::string_view kOnCpuName = "[on CPU]";

struct FlameView {
  FlameTree tree;
  FlameHeading heading;
};
// `namer` may be null.
FlameView flame_view(const Trace& trace, const FlameQuery& query, FrameNamer* namer);

// The stacks that a function is in, each once, by its outermost place in them: who called it, and
// what it called. Percents are of all that the query takes. `order` and `is_inverted` don't matter.
struct FlameButterfly {
  FlameTree callers;  // inverted: the function, then its callers
  FlameTree callees;  // the function, then what it called
  FlameHeading heading;
};
// `name` and `module` as FlameTree tells them.
FlameButterfly flame_butterfly(const Trace& trace, const FlameQuery& query, FrameNamer* namer,
                               std::string_view name, std::string_view module);

// A moment of a frame: a sample, a wait, an allocation.
struct FlameMoment {
  StackOf of = StackOf::kSample;
  std::uint32_t index = 0;  // in Trace::samples, off_cpu, blocks or heap
  std::uint64_t at_ns = 0;
  std::uint64_t length_ns = 0;
};
struct FlameMoments {
  std::uint64_t total = 0;           // moments
  std::uint64_t weight = 0;          // of them, in the tree's unit
  std::vector<FlameMoment> moments;  // by time; where there are more than asked for, evenly thinned
};
// What passes through a node of the tree that flame_view() makes of the same query. `row`: a
// position in flame_rows(tree, max_rows). nullopt: there is no such row.
std::optional<FlameMoments> flame_moments(const Trace& trace, const FlameQuery& query,
                                          FrameNamer* namer, std::uint32_t max_rows,
                                          std::uint32_t row, std::size_t most);

}  // namespace dial9::analysis
