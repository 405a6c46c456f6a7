// See flame_view.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/flame_view.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/counts.h"
#include "analysis/cpu_flame.h"
#include "analysis/heap_flame.h"
#include "analysis/human.h"
#include "analysis/longer_sum.h"
#include "analysis/lock_waits.h"
#include "analysis/off_cpu.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::array<std::pair<FlameOf, std::string_view>, 6> kNames{{
    {FlameOf::kCpu, "cpu"},
    {FlameOf::kOffCpu, "offcpu"},
    {FlameOf::kTime, "time"},
    {FlameOf::kLocks, "locks"},
    {FlameOf::kAllocated, "allocated"},
    {FlameOf::kLive, "live"},
}};

bool is_heap(FlameOf of) { return of == FlameOf::kAllocated || of == FlameOf::kLive; }

FlameUnit unit_of(const Trace& trace, const FlameQuery& query) {
  if (query.of == FlameOf::kCpu) {
    return cpu_flame_unit(trace);
  }
  if (is_heap(query.of)) {
    return query.counts ? FlameUnit::kCount : FlameUnit::kBytes;
  }
  return FlameUnit::kNs;
}

FlameHeading take_off_cpu(const Trace& trace, const FlameQuery& query, const UseStack& use) {
  return take_off_cpu_stacks(trace,
                             {.filter = query.filter,
                              .has_parked = query.has_parked,
                              .span_times = query.span_times},
                             use)
      .heading;
}

// Both at once: what the notes speak of is said before each.
FlameHeading take_time(const Trace& trace, const FlameQuery& query, const UseStack& use) {
  FlameHeading heading{.title = "Time on and off the CPU", .noun = "stack"};
  const auto add_part = [&](const FlameHeading& part, std::string_view name, std::uint64_t ns,
                            std::uint64_t count) {
    heading.notes.push_back(std::string(name) + ": " + human_duration(ns) + " in " +
                            counted(count, part.noun));
    heading.is_uncertain = heading.is_uncertain || part.is_uncertain;
    for (const std::string& note : part.notes) {
      heading.notes.push_back(std::string(name) + ": " + note);
    }
  };
  std::uint64_t ns = 0;
  std::uint64_t count = 0;
  const auto summed = [&](const TakenStack& taken) {
    ns = sum_of(ns, taken.weight);
    count = sum_of(count, taken.count);
    use(taken);
  };
  // Without a rate nobody knows how much time a sample stands for.
  const bool has_rate = cpu_sample_hz(trace) != 0;
  std::uint64_t dropped = 0;
  const FlameHeading on = take_cpu_stacks(trace, query.filter, [&](const TakenStack& taken) {
    if (has_rate) {
      summed(taken);
    } else {
      ++dropped;
    }
  });
  add_part(on, "on the CPU", std::exchange(ns, 0), std::exchange(count, 0));
  if (dropped != 0) {
    heading.notes.push_back(counted(dropped, "CPU sample") +
                            " left out: without their rate they stand for no time");
    heading.is_uncertain = true;
  }
  const FlameHeading off = take_off_cpu(trace, query, summed);
  add_part(off, "off it", ns, count);
  return heading;
}

FlameHeading take_heap(const Trace& trace, const FlameQuery& query, const UseStack& use) {
  const HeapOrder order = query.of == FlameOf::kLive ? HeapOrder::kLive : HeapOrder::kAllocated;
  return take_heap_stacks(heap_report(trace, query.filter, HeapBy::kSite), order, query.counts,
                          use);
}

FlameHeading take(const Trace& trace, const FlameQuery& query, const UseStack& use) {
  switch (query.of) {
    case FlameOf::kCpu:
      return take_cpu_stacks(trace, query.filter, use);
    case FlameOf::kOffCpu:
      return take_off_cpu(trace, query, use);
    case FlameOf::kTime:
      return take_time(trace, query, use);
    case FlameOf::kLocks:
      return take_lock_stacks(trace, query.filter, query.span_times, use);
    case FlameOf::kAllocated:
    case FlameOf::kLive:
      break;
  }
  return take_heap(trace, query, use);
}

// What a wait waited for, or how its thread spent the time: no function.
std::string reason_of(const Trace& trace, const FlameQuery& query, const TakenStack& taken) {
  if (query.of == FlameOf::kLocks) {
    return "";  // all of them; an event of a lock has none, and is of the same tree
  }
  if (taken.of != StackOf::kWait) {
    return query.of == FlameOf::kTime ? std::string(kOnCpuName) : "";
  }
  if (query.top == FlameTop::kNone) {
    return query.of == FlameOf::kTime ? "[off CPU]" : "";
  }
  const OffCpuWait& wait = trace.off_cpu[taken.index];
  if (wait.is_parked) {
    return "[parked: waits for work]";
  }
  if (query.top == FlameTop::kCall && wait.call != kNoName) {
    return "[" + std::string(trace.names.text(wait.call)) + "]";
  }
  if (wait.cause == kNoName) {
    return "[blocked: not known in what]";
  }
  std::string cause(trace.names.text(wait.cause));
  std::replace(cause.begin(), cause.end(), '_', ' ');
  return "[blocked: " + cause + "]";
}

std::string thread_of(const Trace& trace, const TakenStack& taken) {
  const std::string_view name =
      taken.thread_name == kNoName ? std::string_view() : trace.names.text(taken.thread_name);
  return "[thread " + std::to_string(taken.tid) + (name.empty() ? "" : " ") + std::string(name) +
         "]";
}

// Adds stacks to a tree as a query wants them.
class Adder {
 public:
  Adder(const Trace& trace, const FlameQuery& query, FrameNamer* namer, FlameTree& tree)
      : trace_(trace), query_(query), names_(trace, namer, tree, query.frames), tree_(tree) {}

  std::uint32_t add(const TakenStack& taken) {
    const std::span<const FrameId> frames = names_.frames(taken.stack, taken.at_ns, taken.leaf);
    const std::string reason = reason_of(trace_, query_, taken);
    const FrameId inner = reason.empty() ? kNoGroup : tree_.frame(reason);
    if (query_.order == FlameOrder::kHeavy) {
      return tree_.add(frames, taken.weight, taken.count, marks_of(taken, inner));
    }
    scratch_.clear();
    if (taken.of == StackOf::kWait && inner != kNoGroup) {
      scratch_.push_back(inner);
    }
    scratch_.insert(scratch_.end(), frames.begin(), frames.end());
    return tree_.add(scratch_, taken.weight, taken.count,
                     marks_of(taken, tree_.frame(thread_of(trace_, taken))));
  }

  void add_notes(FlameHeading& heading) const { names_.add_notes(heading); }

 private:
  const Trace& trace_;
  const FlameQuery& query_;
  StackNames names_;
  FlameTree& tree_;
  std::vector<FrameId> scratch_;
};

using UseNode = std::function<void(const TakenStack&, std::uint32_t node)>;

// In the order of time: of each thread by itself.
FlameHeading add_in_time(const Trace& trace, const FlameQuery& query, Adder& adder,
                         const UseNode& use) {
  std::vector<TakenStack> stacks;
  std::uint64_t beyond = 0;
  FlameHeading heading = take(trace, query, [&](const TakenStack& taken) {
    if (stacks.size() < kMostInTime) {
      stacks.push_back(taken);
    } else {
      ++beyond;
    }
  });
  if (beyond != 0) {
    heading.notes.push_back(counted(sum_of(beyond, kMostInTime), "stack") +
                            " are too many for an order of time: choose a shorter stretch");
    return heading;
  }
  dial9::stable_sort(stacks.begin(), stacks.end(), [](const TakenStack& a, const TakenStack& b) {
    return a.tid != b.tid ? a.tid < b.tid : a.at_ns < b.at_ns;
  });
  for (const TakenStack& taken : stacks) {
    use(taken, adder.add(taken));
  }
  return heading;
}

// The same calls of `use` with the same nodes for the same query.
FlameView view_of(const Trace& trace, const FlameQuery& query, FrameNamer* namer,
                  const UseNode& use) {
  FlameView view{FlameTree(unit_of(trace, query), query.is_inverted, {}, query.order), {}};
  Adder adder(trace, query, namer, view.tree);
  if (query.order == FlameOrder::kTime && is_heap(query.of)) {
    view.heading = take(trace, query, [](const TakenStack&) {});
    view.heading.notes.emplace_back("allocations of one stack come together: no order of time");
  } else if (query.order == FlameOrder::kTime) {
    view.heading = add_in_time(trace, query, adder, use);
  } else {
    view.heading =
        take(trace, query, [&](const TakenStack& taken) { use(taken, adder.add(taken)); });
  }
  view.heading.by_line = query.frames == FrameBy::kLine;
  add_unwound_notes(view.tree, view.heading);
  adder.add_notes(view.heading);
  note_longer_sum(trace, query.filter, view.tree.unit(), view.tree.total(), view.heading);
  return view;
}

// Of the stacks that were taken; those of a group of allocations one by one.
class Moments {
 public:
  explicit Moments(const Trace& trace) : trace_(trace) {}

  void add(const TakenStack& taken) {
    found_.weight = sum_of(found_.weight, taken.weight);
    if (taken.of == StackOf::kAllocation) {
      sites_.insert(site(taken.stack, taken.unwound, taken.is_truncated));
    } else {
      found_.moments.push_back({taken.of, taken.index, taken.at_ns, taken.length_ns});
    }
  }

  FlameMoments finish(const FlameQuery& query, std::size_t most) {
    add_allocations(query);
    std::vector<FlameMoment>& moments = found_.moments;
    dial9::stable_sort(
        moments.begin(), moments.end(),
        [](const FlameMoment& a, const FlameMoment& b) { return a.at_ns < b.at_ns; });
    found_.total = moments.size();
    if (moments.size() > most) {
      for (std::size_t i = 0; i < most; ++i) {
        moments[i] = moments[i * moments.size() / most];
      }
      moments.resize(most);
    }
    return std::move(found_);
  }

 private:
  // What one stack of a group is taken for: as many as there are parts of it.
  static std::uint64_t site(std::uint32_t stack, UnwoundBy by, bool is_truncated) {
    return std::uint64_t{stack} << 32 | std::uint64_t{static_cast<std::uint8_t>(by)} << 1 |
           std::uint64_t{is_truncated};
  }

  void add_allocations(const FlameQuery& query) {
    const SampleJudge judge(trace_, query.filter);
    for (std::size_t i = 0; i < trace_.heap.size() && !sites_.empty(); ++i) {
      const HeapSample& sample = trace_.heap[i];
      const bool is_meant = query.of == FlameOf::kLive ? is_live_at(sample, query.filter.to_ns)
                                                       : query.filter.has_time(sample.at_ns);
      if (is_meant &&
          sites_.contains(site(sample.stack, unwound_of(sample), sample.is_truncated)) &&
          judge.judge_all_but_time(context_of(sample)) == Verdict::kTakes) {
        found_.moments.push_back(
            {StackOf::kAllocation, static_cast<std::uint32_t>(i), sample.at_ns, 0});
      }
    }
  }

  const Trace& trace_;
  FlameMoments found_;
  std::unordered_set<std::uint64_t> sites_;
};

// One frame in two trees, whose numbers differ.
class FrameMap {
 public:
  FrameMap(const FlameTree& from, FlameTree& to) : from_(from), to_(to) {}
  FrameId of(FrameId frame) {
    const auto [at, is_new] = known_.try_emplace(frame);
    if (is_new) {
      at->second =
          to_.frame(from_.name(frame), from_.module(frame), from_.file(frame), from_.line(frame)) |
          (frame & kInlinedFrame);
    }
    return at->second;
  }

 private:
  const FlameTree& from_;
  FlameTree& to_;
  std::unordered_map<FrameId, FrameId> known_;
};

}  // namespace

std::string_view flame_of_name(FlameOf of) {
  for (const auto& [known, name] : kNames) {
    if (known == of) {
      return name;
    }
  }
  return {};
}

std::optional<FlameOf> flame_of(std::string_view name) {
  for (const auto& [of, known] : kNames) {
    if (known == name) {
      return of;
    }
  }
  return std::nullopt;
}

FlameView flame_view(const Trace& trace, const FlameQuery& query, FrameNamer* namer) {
  return view_of(trace, query, namer, [](const TakenStack&, std::uint32_t) {});
}

FlameButterfly flame_butterfly(const Trace& trace, const FlameQuery& query, FrameNamer* namer,
                               std::string_view name, std::string_view module) {
  const FlameUnit unit = unit_of(trace, query);
  FlameButterfly out{FlameTree(unit, true), FlameTree(unit), {}};
  StackNames names(trace, namer, out.callees, query.frames);
  FrameMap to_callers(out.callees, out.callers);
  const FrameId truncated = out.callees.frame(kTruncatedName);
  std::vector<FrameId> stack;
  std::vector<FrameId> callers;
  std::uint64_t whole = 0;
  out.heading = take(trace, query, [&](const TakenStack& taken) {
    const std::span<const FrameId> frames = names.frames(taken.stack, taken.at_ns, taken.leaf);
    stack.assign(frames.begin(), frames.end());
    if (stack.empty()) {
      stack.push_back(out.callees.frame(kNoStackName));
    }
    if (taken.is_truncated) {
      stack.push_back(truncated);
    }
    if (const std::string reason = reason_of(trace, query, taken); !reason.empty()) {
      stack.push_back(out.callees.frame(reason));
    }
    whole = sum_of(whole, taken.weight);
    for (std::size_t at = stack.size(); at-- != 0;) {  // the outermost first
      if (out.callees.name(stack[at]) == name && out.callees.module(stack[at]) == module) {
        // That its outer frames are missing is a frame here.
        const StackMarks marks{.by = marks_of(taken).by};
        out.callees.add({stack.data(), at + 1}, taken.weight, taken.count, marks);
        callers.clear();
        for (std::size_t i = at; i < stack.size(); ++i) {
          callers.push_back(to_callers.of(stack[i]));
        }
        out.callers.add(callers, taken.weight, taken.count, marks);
        break;
      }
    }
  });
  out.heading.whole = whole;
  names.add_notes(out.heading);
  note_longer_sum(trace, query.filter, unit, whole, out.heading);
  out.heading.by_line = query.frames == FrameBy::kLine;
  if (out.callees.count() == 0) {
    out.heading.notes.emplace_back("no stack that is taken has this function");
  }
  return out;
}

std::optional<FlameMoments> flame_moments(const Trace& trace, const FlameQuery& query,
                                          FrameNamer* namer, std::uint32_t max_rows,
                                          std::uint32_t row, std::size_t most) {
  const FlameView view = flame_view(trace, query, namer);
  const std::vector<FlameRow> rows = flame_rows(view.tree, max_rows);
  if (row >= rows.size()) {
    return std::nullopt;
  }
  const std::uint32_t wanted = rows[row].node;
  const std::vector<FlameNode>& nodes = view.tree.nodes();
  Moments moments(trace);
  view_of(trace, query, namer, [&](const TakenStack& taken, std::uint32_t node) {
    while (node > wanted) {  // parents have lower numbers
      node = nodes[node].parent;
    }
    if (node == wanted) {
      moments.add(taken);
    }
  });
  return moments.finish(query, most);
}

}  // namespace dial9::analysis
