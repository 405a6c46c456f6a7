// See cpu_flame.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/cpu_flame.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "base/stable_sort.h"

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

template <class Use>
void for_each_book(const Trace& trace, Use use) {
  const NameId wanted = trace.names.find("CpuProfileEvent");
  for (const EventTable& table : trace.custom) {
    if (table.name != wanted || wanted == kNoName) {
      continue;
    }
    const auto cell = [&](std::size_t row, std::string_view name) -> std::uint64_t {
      for (std::size_t i = 0; i < table.fields.size(); ++i) {
        if (trace.names.text(table.fields[i].name) == name) {
          const Cell found = table.cell(row, i);
          return found.type == CellType::kU64 ? found.bits : 0;
        }
      }
      return 0;
    };
    for (std::size_t row = 0; row < table.size(); ++row) {
      use(table.at_ns[row], [&](std::string_view name) { return cell(row, name); });
    }
  }
}

Books books_of(const Trace& trace, const SampleFilter& filter) {
  Books books;
  for_each_book(trace, [&](std::uint64_t at_ns, const auto& cell) {
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

class Filter {
 public:
  Filter(const Trace& trace, const SampleFilter& filter) : trace_(trace), filter_(filter) {
    if (filter.span) {
      add_spans_inside(*filter.span);
    }
  }

  enum class Verdict : std::uint8_t { kTakes, kLeaves, kUnknown };

  Verdict judge(const CpuSample& sample, const SampleRow& row) const {
    if (sample.at_ns < filter_.from_ns || sample.at_ns >= filter_.to_ns || !is_on_thread(sample) ||
        !has_label(sample)) {
      return Verdict::kLeaves;
    }
    if (filter_.worker &&
        (row.lane == kNoIndex || trace_.lanes[row.lane].worker != *filter_.worker)) {
      return Verdict::kLeaves;
    }
    if (filter_.span && sample.span_id == kUnknownId) {
      return Verdict::kUnknown;
    }
    if (filter_.span && !spans_.contains(sample.span_id)) {
      return Verdict::kLeaves;
    }
    return filter_.task ? judge_task(sample, row) : Verdict::kTakes;
  }

 private:
  // Parents come before or behind their children: a child's chain of parents is short.
  void add_spans_inside(std::uint64_t id) {
    constexpr int kMostDepth = 256;
    spans_.insert(id);
    const Spans& spans = trace_.spans;
    for (std::uint32_t i = 0; i < spans.size(); ++i) {
      std::uint32_t at = i;
      for (int depth = 0; at != kNoIndex && depth < kMostDepth; ++depth) {
        if (spans.id[at] == id) {
          spans_.insert(spans.id[i]);
          break;
        }
        at = spans.parent[at];
      }
    }
    spans_.erase(0);
  }

  bool is_on_thread(const CpuSample& sample) const {
    return filter_.thread.empty() || trace_.names.text(sample.thread_name) == filter_.thread ||
           std::to_string(sample.tid) == filter_.thread;
  }

  bool has_label(const CpuSample& sample) const {
    if (filter_.label.empty()) {
      return true;
    }
    if (sample.label_name == kNoName) {
      return false;
    }
    const std::string_view name = trace_.names.text(sample.label_name);
    const std::string_view wanted = filter_.label;
    if (!wanted.starts_with(name)) {
      return false;
    }
    const std::string_view rest = wanted.substr(name.size());
    return rest.empty() ||
           (rest.front() == '=' && rest.substr(1) == trace_.names.text(sample.label_value));
  }

  // Where the writer doesn't say the task, it is that of the poll that the worker was in.
  Verdict judge_task(const CpuSample& sample, const SampleRow& row) const {
    if (sample.task_id != kUnknownId) {
      return sample.task_id == *filter_.task ? Verdict::kTakes : Verdict::kLeaves;
    }
    if (row.lane == kNoIndex) {
      return Verdict::kUnknown;
    }
    const std::uint32_t poll = trace_.poll_at(row.lane, sample.at_ns);
    const std::uint32_t task = poll == kNoIndex ? kNoIndex : trace_.polls.task[poll];
    return task != kNoIndex && trace_.tasks.id[task] == *filter_.task ? Verdict::kTakes
                                                                      : Verdict::kLeaves;
  }

  const Trace& trace_;
  const SampleFilter& filter_;
  std::unordered_set<std::uint64_t> spans_;
};

struct Counts {
  std::uint64_t cpu = 0;       // samples of CPU time in all
  std::uint64_t switches = 0;  // that stand for no CPU time
  std::uint64_t unknown = 0;   // of which the filter can't tell
};

std::uint64_t weight_of(const CpuSample& sample, std::uint64_t hz) {
  return hz != 0 ? period_time(sample.weight, hz) : sample.weight;
}

// Calls use(index, sample) for each sample that the filter takes.
template <class Use>
void for_each_taken(const Trace& trace, const SampleFilter& filter, Counts& counts, Use use) {
  const Filter takes(trace, filter);
  for (const SampleRow& row : trace.sample_rows) {
    for (std::uint32_t i = row.samples.first; i < row.samples.last; ++i) {
      const CpuSample& sample = trace.samples[i];
      if (sample.source != SampleSource::kCpu) {
        ++counts.switches;
        continue;
      }
      ++counts.cpu;
      const Filter::Verdict verdict = takes.judge(sample, row);
      counts.unknown += verdict == Filter::Verdict::kUnknown ? 1 : 0;
      if (verdict == Filter::Verdict::kTakes) {
        use(i, sample);
      }
    }
  }
}

void add_notes(const Trace& trace, const SampleFilter& filter, const Counts& counts,
               std::uint64_t hz, CpuFlame& flame) {
  std::vector<std::string>& notes = flame.heading.notes;
  const Books books = books_of(trace, filter);
  if (counts.cpu == 0) {
    notes.emplace_back(
        "no CPU samples in this trace: record with add_cpu_samples() or "
        "DIAL9_CPU_PROFILE_ENABLED");
  } else if (flame.tree.count() == 0) {
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

bool SampleFilter::empty() const {
  return from_ns == 0 && to_ns == ~std::uint64_t{0} && !worker && thread.empty() && !task &&
         !span && label.empty();
}

std::uint64_t cpu_sample_hz(const Trace& trace) {
  std::uint64_t hz = 0;
  bool is_one = true;
  const auto note = [&](std::uint64_t found) {
    is_one = is_one && (hz == 0 || hz == found || found == 0);
    hz = found == 0 ? hz : found;
  };
  for_each_book(trace, [&](std::uint64_t, const auto& cell) { note(cell("asked_hz")); });
  for (const MetadataEntry& entry : trace.metadata) {
    if (entry.key == "cpu.profile.frequency_hz") {
      std::uint64_t found = 0;
      std::from_chars(entry.value.data(), entry.value.data() + entry.value.size(), found);
      note(found);
    }
  }
  return is_one && hz <= kSecond ? hz : 0;
}

CpuFlame cpu_flame(const Trace& trace, const SampleFilter& filter, FrameNamer* namer,
                   bool is_inverted) {
  const std::uint64_t hz = cpu_sample_hz(trace);
  CpuFlame flame{FlameTree(hz != 0 ? FlameUnit::kNs : FlameUnit::kCount, is_inverted),
                 {.title = "CPU time"}};
  StackNames names(trace, namer, flame.tree);
  Counts counts;
  for_each_taken(trace, filter, counts, [&](std::uint32_t, const CpuSample& sample) {
    flame.tree.add(names.frames(sample.stack, sample.at_ns), weight_of(sample, hz), 1,
                   sample.is_truncated);
  });
  add_notes(trace, filter, counts, hz, flame);
  return flame;
}

std::optional<FlameMoments> cpu_flame_moments(const Trace& trace, const SampleFilter& filter,
                                              FrameNamer* namer, bool is_inverted,
                                              std::uint32_t max_rows, std::uint32_t row,
                                              std::size_t most) {
  CpuFlame flame = cpu_flame(trace, filter, namer, is_inverted);
  const std::vector<FlameRow> rows = flame_rows(flame.tree, max_rows);
  if (row >= rows.size()) {
    return std::nullopt;
  }
  const std::uint32_t wanted = rows[row].node;
  const std::uint64_t hz = cpu_sample_hz(trace);
  const std::vector<FlameNode>& nodes = flame.tree.nodes();
  StackNames names(trace, namer, flame.tree);
  FlameMoments found;
  Counts counts;
  for_each_taken(trace, filter, counts, [&](std::uint32_t i, const CpuSample& sample) {
    std::uint32_t node =
        flame.tree.find(names.frames(sample.stack, sample.at_ns), sample.is_truncated);
    while (node > wanted) {  // parents have lower numbers
      node = nodes[node].parent;
    }
    if (node == wanted) {
      ++found.total;
      found.weight = sum_of(found.weight, weight_of(sample, hz));
      found.samples.push_back(i);
    }
  });
  dial9::stable_sort(found.samples.begin(), found.samples.end(),
                     [&](std::uint32_t a, std::uint32_t b) {
                       return trace.samples[a].at_ns < trace.samples[b].at_ns;
                     });
  if (found.samples.size() > most) {
    for (std::size_t i = 0; i < most; ++i) {
      found.samples[i] = found.samples[i * found.samples.size() / most];
    }
    found.samples.resize(most);
  }
  return found;
}

}  // namespace dial9::analysis
