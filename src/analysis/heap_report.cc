// See heap_report.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/heap_report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "analysis/lack.h"

namespace dial9::analysis {
namespace {

std::uint64_t key_of(HeapBy by, const HeapSample& sample) {
  switch (by) {
    case HeapBy::kSite:
      return sample.stack;
    case HeapBy::kTask:
      return sample.task_id;
    case HeapBy::kSpan:
      return sample.span_id;
    case HeapBy::kLabel:
      return std::uint64_t{sample.label_name} << 32 | sample.label_value;
    case HeapBy::kThread:
      break;
  }
  return sample.tid;
}

// The part of a group that a sample is of. There are few.
HeapPart& part_of(HeapGroup& group, const HeapSample& sample) {
  const UnwoundBy by = unwound_of(sample);
  for (HeapPart& part : group.parts) {
    if (part.unwound == by && part.is_truncated == sample.is_truncated) {
      return part;
    }
  }
  HeapPart& part = group.parts.emplace_back();
  part.unwound = by;
  part.is_truncated = sample.is_truncated;
  return part;
}

void add(HeapGroup& group, const SampleFilter& filter, std::uint64_t end_ns,
         const HeapSample& sample) {
  const double weight = heap_weight(sample.size, sample.rate_bytes);
  const bool is_in_range = sample.at_ns >= filter.from_ns && sample.at_ns < filter.to_ns;
  const bool is_live = is_live_at(sample, filter.to_ns);
  const bool was_live = filter.from_ns != 0 && is_live_at(sample, filter.from_ns - 1);
  HeapPart& part = part_of(group, sample);
  if (is_in_range) {
    group.allocated.add(sample.size, weight);
    part.allocated.add(sample.size, weight);
    group.untracked += sample.is_tracked ? 0 : 1;
    if (sample.freed_ns < filter.to_ns) {
      group.ages.emplace_back(sample.freed_ns - sample.at_ns, weight);
    }
  }
  if (is_live) {
    group.live.add(sample.size, weight);
    part.live.add(sample.size, weight);
  }
  if (was_live) {
    group.live_before.add(sample.size, weight);
    part.live_before.add(sample.size, weight);
  }
  if (is_live != was_live) {
    const auto bytes = static_cast<double>(sample.size);
    group.growth_variance += weight * (weight - 1) * bytes * bytes;
  }
  const std::uint64_t to_ns = std::min(filter.to_ns, end_ns);
  const std::uint64_t half_ns = filter.from_ns + (to_ns - std::min(to_ns, filter.from_ns)) / 2;
  if (is_in_range && sample.is_tracked && sample.at_ns < half_ns) {
    group.early.add(sample.size, weight);
    if (is_live) {
      group.early_live.add(sample.size, weight);
    }
  }
}

// The rate that all of the trace was asked for; 0: it doesn't say, or says several.
std::uint64_t only_rate(const Trace& trace) {
  std::string_view text;
  for (const MetadataEntry& entry : trace.metadata) {
    if (entry.key != "memory.sample_rate_bytes") {
      continue;
    }
    if (!text.empty() && entry.value != text) {
      return 0;
    }
    text = entry.value;
  }
  std::uint64_t rate = 0;
  std::from_chars(text.data(), text.data() + text.size(), rate);
  return rate;
}

// A stretch that began before the range's end.
bool begins_in_time(const HeapWindow& window, const SampleFilter& filter) {
  return window.at_ns - std::min(window.at_ns, window.elapsed_ns) < filter.to_ns;
}

// Of samples at the rate that was asked for, one in so many was taken at times; 1: all, or the
// trace doesn't say what was asked for. Runs may have asked for different rates.
std::uint64_t thinning_in(const Trace& trace, const SampleFilter& filter) {
  std::uint64_t one_in = 1;
  for (const HeapWindow& window : trace.heap_windows) {
    if (window.sample_rate_bytes != 0 && window.at_ns >= filter.from_ns &&
        begins_in_time(window, filter)) {
      one_in = std::max(one_in, window.largest_rate_bytes / window.sample_rate_bytes);
    }
  }
  // After the last one, of a run that was killed, samples alone tell.
  const std::uint64_t asked = only_rate(trace);
  for (std::size_t i = 0; asked != 0 && i < trace.heap.size(); ++i) {
    const HeapSample& sample = trace.heap[i];
    if (sample.at_ns >= filter.from_ns && sample.at_ns < filter.to_ns) {
      one_in = std::max(one_in, sample.rate_bytes / asked);
    }
  }
  return one_in;
}

void add_thinning_note(const Trace& trace, HeapReport& report) {
  const std::uint64_t one_in = thinning_in(trace, report.filter);
  if (one_in <= 1) {
    return;
  }
  report.notes.push_back("at times one sample in " + human_count(one_in) +
                         " was taken, to keep within the recorder's budget: figures allow for it, "
                         "and are less exact");
}

// What stands against taking the figures as they are.
void add_notes(const Trace& trace, HeapReport& report) {
  HeapWindow sums;
  const HeapWindow* last = nullptr;
  for (const HeapWindow& window : trace.heap_windows) {
    if (!begins_in_time(window, report.filter)) {
      break;
    }
    // Frees may be of anything in it, also of what was there before.
    sums.lost_frees = sum_of(sums.lost_frees, window.lost_frees);
    if (window.at_ns < report.filter.from_ns) {
      continue;
    }
    sums.lost_samples = sum_of(sums.lost_samples, window.lost_samples);
    last = window.is_own ? &window : last;
  }
  std::vector<std::string>& notes = report.notes;
  if (sums.lost_samples != 0) {
    notes.push_back(counted(sums.lost_samples, "sample", "was", "were") +
                    " lost, so all figures are too low: a larger sample rate makes fewer");
  }
  if (sums.lost_frees != 0) {
    notes.push_back(counted(sums.lost_frees, "free", "wasn't", "weren't") +
                    " recorded: live figures are uncertain, up to so many samples seem alive that "
                    "aren't");
  }
  if (report.is_live_known && report.total.untracked != 0) {
    notes.push_back(counted(report.total.untracked, "sample", "isn't", "aren't") +
                    " tracked (the live set was full): live figures are too low");
  }
  if (const std::uint64_t known = report.total.live.samples;
      last != nullptr && SampleFilter{.from_ns = report.filter.from_ns} == report.filter &&
      last->live_samples > known) {
    notes.push_back(counted(last->live_samples - known, "live sample", "isn't", "aren't") +
                    " in this trace (older, or lost): live figures are too low");
  }
  report.has_lost_samples = sums.lost_samples != 0;
  report.is_live_uncertain =
      report.is_live_known && notes.size() > (report.has_lost_samples ? 1U : 0U);
  add_thinning_note(trace, report);
  if (report.unknown != 0) {
    notes.push_back(counted(report.unknown, "sample", "doesn't", "don't") +
                    " say whose they are, and are left out");
  }
  if (report.filter.worker) {
    notes.emplace_back("heap samples don't tell the worker: none is taken by it");
  }
  if (report.filter.has_thread_name()) {
    notes.emplace_back("heap samples don't tell the names of threads: give the thread's id");
  }
  const HeapGroup& total = report.total;
  if (report.is_allocated_known && !report.filter.empty() &&
      total.allocated.samples + total.live.samples + total.live_before.samples == 0) {
    notes.push_back("none of the " + counted(trace.heap.size(), "sample") +
                    " is taken by the filter");
  }
  if (std::any_of(report.groups.begin(), report.groups.end(),
                  [](const HeapGroup& group) { return group.allocated.samples != 0; }) &&
      trace.heap.size() != 0 && trace.heap[0].rate_bytes == 0) {
    notes.emplace_back("the sample rate isn't recorded: figures are of the samples alone");
  }
  for (const std::string_view key : {"memory.profile.start_error"}) {
    if (const std::string_view text = trace.metadata_value(key); !text.empty()) {
      notes.push_back("the recorder says: " + std::string(text));
    }
  }
  if (trace.hit_memory_limit) {
    notes.emplace_back("the trace is larger than the memory limit: the rest isn't counted");
  }
}

}  // namespace

void HeapFigure::add(std::uint64_t size, double weight) {
  const auto one = static_cast<double>(size);
  bytes += weight * one;
  count += weight;
  bytes_variance += weight * (weight - 1) * one * one;
  count_variance += weight * (weight - 1);
  ++samples;
}

void HeapFigure::add(const HeapFigure& other) {
  bytes += other.bytes;
  count += other.count;
  bytes_variance += other.bytes_variance;
  count_variance += other.count_variance;
  samples += other.samples;
}

double HeapFigure::bytes_error() const { return std::sqrt(bytes_variance); }

double HeapFigure::count_error() const { return std::sqrt(count_variance); }

HeapFigure HeapGroup::truncated(HeapFigure HeapPart::*figure) const {
  HeapFigure sum;
  for (const HeapPart& part : parts) {
    if (part.is_truncated) {
      sum.add(part.*figure);
    }
  }
  return sum;
}

bool HeapGroup::is_leak_candidate() const {
  constexpr double kErrors = 3;
  const double growth = growth_bytes();
  return growth > 0 && growth > kErrors * std::sqrt(growth_variance) && early.samples != 0 &&
         early_live.count * 2 > early.count;
}

std::optional<std::uint64_t> HeapGroup::median_age_ns() const {
  if (ages.empty()) {
    return std::nullopt;
  }
  auto sorted = ages;
  std::sort(sorted.begin(), sorted.end());
  double all = 0;
  for (const auto& [age, count] : sorted) {
    all += count;
  }
  double below = 0;
  for (const auto& [age, count] : sorted) {
    below += count;
    if (below * 2 >= all) {
      return age;
    }
  }
  return sorted.back().first;
}

bool is_live_at(const HeapSample& sample, std::uint64_t at_ns) {
  return sample.is_tracked && sample.at_ns <= at_ns &&
         (sample.freed_ns == kNotFreed || sample.freed_ns > at_ns);
}

UnwoundBy unwound_of(const HeapSample& sample) {
  return sample.stack == kNoIndex ? UnwoundBy::kNoStack : sample.unwound;
}

SampleContext context_of(const HeapSample& sample) {
  static_assert(kNoHeapId == kUnknownId);
  return {.at_ns = sample.at_ns,
          .task_id = sample.task_id,
          .span_id = sample.span_id,
          .tid = sample.tid,
          .label_name = sample.label_name,
          .label_value = sample.label_value};
}

std::string_view heap_lack(const HeapReport& report, HeapOrder order) {
  if (!report.is_allocated_known) {
    return report.lack;
  }
  if (order != HeapOrder::kAllocated && !report.is_live_known) {
    return "what lives isn't known: record with tracks_live, or with "
           "DIAL9_MEMORY_TRACK_LIVESET=1";
  }
  return {};
}

HeapReport heap_report(const Trace& trace, const SampleFilter& filter, HeapBy by) {
  HeapReport report;
  report.by = by;
  report.filter = filter;
  report.is_allocated_known = trace.heap.size() != 0;
  if (!report.is_allocated_known) {
    report.lack = lack_text(trace, "heap samples",
                            "dial9::heap linked and add_heap_samples() called, or with "
                            "libdial9_heap.so preloaded and DIAL9_MEMORY_PROFILE_ENABLED=1");
  }
  report.is_live_known = report.is_allocated_known && trace.tracks_live_heap;
  const SampleJudge judge(trace, filter);
  std::unordered_map<std::uint64_t, std::size_t> group_of;
  for (std::size_t i = 0; i < trace.heap.size(); ++i) {
    const HeapSample& sample = trace.heap[i];
    const Verdict verdict = judge.judge_all_but_time(context_of(sample));
    report.unknown += verdict == Verdict::kUnknown ? 1 : 0;
    if (verdict != Verdict::kTakes) {
      continue;
    }
    const auto [at, is_new] = group_of.try_emplace(key_of(by, sample), report.groups.size());
    if (is_new) {
      HeapGroup& group = report.groups.emplace_back();
      group.key = at->first;
      group.first_ns = sample.at_ns;
    }
    add(report.groups[at->second], filter, trace.end_ns, sample);
    add(report.total, filter, trace.end_ns, sample);
  }
  std::erase_if(report.groups, [](const HeapGroup& group) {
    return group.allocated.samples + group.live.samples + group.live_before.samples == 0;
  });
  std::sort(report.groups.begin(), report.groups.end(), [](const HeapGroup& a, const HeapGroup& b) {
    return a.allocated.bytes != b.allocated.bytes ? a.allocated.bytes > b.allocated.bytes
                                                  : a.key < b.key;
  });
  add_notes(trace, report);
  return report;
}

}  // namespace dial9::analysis
