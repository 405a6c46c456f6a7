// See cpu_flame.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/cpu_flame.h"

#include <charconv>

#include "analysis/counts.h"
#include "analysis/custom_rows.h"
#include "analysis/human.h"
#include "analysis/lack.h"
#include "analysis/longer_sum.h"

namespace dial9::analysis {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Sums over the CpuProfileEvents of a time range.
struct Books {
  std::uint64_t cpu_ns = 0;
  std::uint64_t periods = 0;
  std::uint64_t lost = 0;
  bool is_there = false;
};

constexpr std::string_view kBook = "CpuProfileEvent";

Books books_of(const Trace& trace, const SampleFilter& filter) {
  Books books;
  for_each_custom(trace, kBook, [&](std::uint64_t at_ns, const auto& cell) {
    if (at_ns < filter.from_ns || at_ns >= filter.to_ns) {
      return;
    }
    books.is_there = true;
    books.cpu_ns = sum_of(books.cpu_ns, cell("cpu_ns"));
    books.periods = sum_of(books.periods, cell("periods"));
    books.lost = sum_of(books.lost, cell("lost"));
  });
  return books;
}

std::uint64_t period_time(std::uint64_t periods, std::uint64_t hz) {
  return count_of(static_cast<double>(periods) * 1e9 / static_cast<double>(hz) + 0.5);
}

SampleContext context_of(const CpuSample& sample, const SampleRow& row) {
  return {.at_ns = sample.at_ns,
          .task_id = sample.task_id,
          .span_id = sample.span_id,
          .tid = sample.tid,
          .lane = row.lane,
          .thread_name = sample.thread_name,
          .label_name = sample.label_name,
          .label_value = sample.label_value,
          .is_label_known = sample.is_label_known};
}

struct Counts {
  std::uint64_t cpu = 0;  // samples of CPU time in all
  std::uint64_t taken = 0;
  std::uint64_t switches = 0;  // that stand for no CPU time
  std::uint64_t unknown = 0;   // of which the filter can't tell
};

std::uint64_t weight_of(const CpuSample& sample, std::uint64_t hz) {
  return hz != 0 ? period_time(sample.weight, hz) : sample.weight;
}

// Calls use(index, sample) for each sample that the filter takes.
template <class Use>
void for_each_taken(const Trace& trace, const SampleFilter& filter, Counts& counts, Use use) {
  const SampleJudge takes(trace, filter);
  for (const SampleRow& row : trace.sample_rows) {
    for (std::uint32_t i = row.samples.first; i < row.samples.last; ++i) {
      const CpuSample& sample = trace.samples[i];
      if (sample.source != SampleSource::kCpu) {
        ++counts.switches;
        continue;
      }
      ++counts.cpu;
      const Verdict verdict = takes.judge(context_of(sample, row));
      counts.unknown += verdict == Verdict::kUnknown ? 1 : 0;
      if (verdict == Verdict::kTakes) {
        ++counts.taken;
        use(i, sample);
      }
    }
  }
}

void add_notes(const Trace& trace, const SampleFilter& filter, const Counts& counts,
               std::uint64_t hz, FlameHeading& heading) {
  std::vector<std::string>& notes = heading.notes;
  const Books books = books_of(trace, filter);
  if (counts.cpu == 0) {
    heading.is_unknown = true;
    notes.push_back(
        lack_text(trace, "CPU samples", "add_cpu_samples() or DIAL9_CPU_PROFILE_ENABLED"));
  } else if (counts.taken == 0) {
    notes.push_back("none of the " + counted(counts.cpu, "sample") + " is taken by the filter");
  }
  if (books.is_there && books.cpu_ns != 0 && hz != 0) {
    notes.push_back("sampled at " + std::to_string(hz) +
                    " Hz: " + human_duration(period_time(books.periods, hz)) + " of the " +
                    human_duration(books.cpu_ns) + " of CPU time that the process used");
  }
  if (hz == 0 && counts.cpu != 0) {
    notes.emplace_back("the rate of the samples isn't known, or not one for all: they are counted");
  }
  heading.is_uncertain = books.lost != 0;
  if (books.lost != 0) {
    notes.push_back(counted(books.lost, "sample", "was", "were") +
                    " lost: there was no room for them");
  }
  if (counts.unknown != 0) {
    notes.push_back(counted(counts.unknown, "sample", "doesn't", "don't") +
                    " say whose they are, and are left out");
  }
  if (counts.switches != 0) {
    notes.push_back(counted(counts.switches, "sample") +
                    " of context switches left out: they stand for no CPU time");
  }
  for (const std::string_view key : {"cpu.profile.start_error", "cpu.profile.notice"}) {
    if (const std::string_view text = trace.metadata_value(key); !text.empty()) {
      notes.push_back("the recorder says: " + std::string(text));
    }
  }
  if (trace.hit_memory_limit) {
    notes.emplace_back("the trace is larger than the memory limit: the rest isn't counted");
  }
}

}  // namespace

std::uint64_t cpu_sample_hz(const Trace& trace) {
  std::uint64_t hz = 0;
  bool is_one = true;
  const auto note = [&](std::uint64_t found) {
    is_one = is_one && (hz == 0 || hz == found || found == 0);
    hz = found == 0 ? hz : found;
  };
  for_each_custom(trace, kBook, [&](std::uint64_t, const auto& cell) { note(cell("asked_hz")); });
  for (const MetadataEntry& entry : trace.metadata) {
    if (entry.key == "cpu.profile.frequency_hz") {
      std::uint64_t found = 0;
      std::from_chars(entry.value.data(), entry.value.data() + entry.value.size(), found);
      note(found);
    }
  }
  return is_one && hz <= kSecond ? hz : 0;
}

FlameHeading take_cpu_stacks(const Trace& trace, const SampleFilter& filter, const UseStack& use) {
  const std::uint64_t hz = cpu_sample_hz(trace);
  FlameHeading heading{.title = "CPU time"};
  Counts counts;
  for_each_taken(trace, filter, counts, [&](std::uint32_t i, const CpuSample& sample) {
    use({.of = StackOf::kSample,
         .leaf = Leaf::kInterrupted,
         .is_truncated = sample.is_truncated,
         .unwound = sample.unwound,
         .stack = sample.stack,
         .index = i,
         .tid = sample.tid,
         .thread_name = sample.thread_name,
         .at_ns = sample.at_ns,
         .weight = weight_of(sample, hz)});
  });
  add_notes(trace, filter, counts, hz, heading);
  return heading;
}

CpuFlame cpu_flame(const Trace& trace, const SampleFilter& filter, FrameNamer* namer,
                   bool is_inverted, FrameBy by) {
  CpuFlame flame{FlameTree(cpu_flame_unit(trace), is_inverted), {}};
  StackNames names(trace, namer, flame.tree, by);
  flame.heading = take_cpu_stacks(trace, filter, [&](const TakenStack& taken) {
    flame.tree.add(names.frames(taken.stack, taken.at_ns, taken.leaf), taken.weight, taken.count,
                   marks_of(taken));
  });
  add_unwound_notes(flame.tree, flame.heading);
  names.add_notes(flame.heading);
  note_longer_sum(trace, filter, flame.tree.unit(), flame.tree.total(), flame.heading);
  flame.heading.by_line = by == FrameBy::kLine;
  return flame;
}

}  // namespace dial9::analysis
