// Handlers for heap samples, and the pass that puts each free with its allocation.
// Spec: docs/spec/heap_samples.md, "Events".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/loader_impl.h"
#include "base/stable_sort.h"

namespace dial9::analysis {

using format::Event;

double heap_weight(std::uint64_t size, std::uint64_t rate_bytes) {
  if (rate_bytes <= 1) {
    return 1;
  }
  // A sample of 0 bytes can't be, but may be written.
  const double bytes = static_cast<double>(std::max<std::uint64_t>(size, 1));
  return 1 / -std::expm1(-bytes / static_cast<double>(rate_bytes));
}

void Loader::Impl::on_alloc(const Event& event, const Plan& plan) {
  HeapSample sample;
  sample.at_ns = event.timestamp_ns;
  sample.tid = number32(event, plan.field[0], 0);
  sample.size = number(event, plan.field[1], 0);
  sample.address = identity(event, plan.field[2], 0);
  sample.stack = stack(event, plan.field[3]);
  sample.task_id = plan.field[4] < 0 ? kNoHeapId : identity(event, plan.field[4], 0);
  sample.span_id = plan.field[5] < 0 ? kNoHeapId : identity(event, plan.field[5], 0);
  sample.label_name = text(event, plan.field[6]);
  sample.label_value = text(event, plan.field[7]);
  sample.is_truncated = number(event, plan.field[8], 0) != 0;
  sample.unwound = unwound_by(trace_.names.text(text(event, plan.field[11])));
  sample.rate_bytes = number(event, plan.field[9], 0);
  sample.is_tracked = number(event, plan.field[10], 1) != 0;
  says_tracked_ = says_tracked_ || plan.field[10] >= 0;
  trace_.heap.push_back(sample);
}

void Loader::Impl::on_free(const Event& event, const Plan& plan) {
  RawFree free;
  free.at_ns = event.timestamp_ns;
  free.address = identity(event, plan.field[0], 0);
  free.alloc_ns = number(event, plan.field[1], kUnknownNs);
  frees_.push_back(free);
}

void Loader::Impl::on_heap_profile(const Event& event, const Plan& plan) {
  HeapWindow window;
  window.at_ns = event.timestamp_ns;
  window.elapsed_ns = number(event, plan.field[0], 0);
  window.lost_samples = number(event, plan.field[1], 0);
  window.lost_frees = number(event, plan.field[2], 0);
  window.untracked = number(event, plan.field[3], 0);
  window.live_samples = number(event, plan.field[4], 0);
  window.is_own = true;
  window.sample_rate_bytes = number(event, plan.field[6], 0);
  window.largest_rate_bytes = number(event, plan.field[7], 0);
  trace_.heap_windows.push_back(window);
  trace_.tracks_live_heap = trace_.tracks_live_heap || number(event, plan.field[5], 0) != 0;
}

void Loader::Impl::on_heap_overflow(const Event& event, const Plan& plan) {
  HeapWindow window;
  window.at_ns = event.timestamp_ns;
  window.lost_samples = number(event, plan.field[0], 0);
  window.lost_frees = number(event, plan.field[1], 0);
  trace_.heap_windows.push_back(window);
}

namespace {

// Of writers that say it once for all.
std::uint64_t metadata_rate(const Trace& trace) {
  const std::string_view text = trace.metadata_value("memory.sample_rate_bytes");
  std::uint64_t rate = 0;
  std::from_chars(text.data(), text.data() + text.size(), rate);
  return rate;
}

template <class Row, class Less>
void sort_column(Column<Row>& rows, Less less) {
  std::vector<std::uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0U);
  dial9::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return less(rows[a], rows[b]); });
  Column<Row> sorted;
  for (const std::uint32_t i : order) {
    sorted.push_back(rows[i]);
  }
  rows = std::move(sorted);
}

}  // namespace

// A free is of the allocation that began at its address at the moment that it names; of one that
// names none, of the last before it.
void Loader::Impl::match_frees() {
  Column<HeapSample>& heap = trace_.heap;
  sort_column(heap, [](const HeapSample& a, const HeapSample& b) {
    return std::tie(a.address, a.at_ns) < std::tie(b.address, b.at_ns);
  });
  std::vector<std::uint32_t> rows(heap.size());
  std::iota(rows.begin(), rows.end(), 0U);
  for (std::size_t i = 0; i < frees_.size(); ++i) {
    const RawFree& free = frees_[i];
    const bool is_named = free.alloc_ns != kUnknownNs;
    const std::uint64_t wanted = is_named ? free.alloc_ns : free.at_ns;
    const auto after = std::partition_point(rows.begin(), rows.end(), [&](std::uint32_t row) {
      return std::tie(heap[row].address, heap[row].at_ns) <= std::tie(free.address, wanted);
    });
    HeapSample* found = after == rows.begin() ? nullptr : &heap[*std::prev(after)];
    if (found == nullptr || found->address != free.address || found->freed_ns != kNotFreed ||
        (is_named && found->at_ns != free.alloc_ns)) {
      ++trace_.heap_frees_unmatched;
      continue;
    }
    found->freed_ns = std::max(free.at_ns, found->at_ns);
  }
}

void Loader::Impl::build_heap() {
  const bool has_frees = !frees_.empty();
  trace_.tracks_live_heap = trace_.tracks_live_heap || has_frees ||
                            trace_.metadata_value("memory.track_liveset") == "true";
  match_frees();
  frees_.clear();
  const std::uint64_t rate = metadata_rate(trace_);
  for (std::size_t i = 0; i < trace_.heap.size(); ++i) {
    HeapSample& sample = trace_.heap[i];
    sample.label_name = settled(sample.label_name);
    sample.label_value = settled(sample.label_value);
    sample.rate_bytes = sample.rate_bytes == 0 ? rate : sample.rate_bytes;
    sample.is_tracked = says_tracked_ ? sample.is_tracked : trace_.tracks_live_heap;
  }
  sort_column(trace_.heap,
              [](const HeapSample& a, const HeapSample& b) { return a.at_ns < b.at_ns; });
  // Ours comes with the ecosystem's event about the same.
  std::vector<HeapWindow>& windows = trace_.heap_windows;
  const bool has_own =
      std::any_of(windows.begin(), windows.end(), [](const HeapWindow& w) { return w.is_own; });
  std::erase_if(windows, [&](const HeapWindow& window) { return has_own && !window.is_own; });
  dial9::stable_sort(windows.begin(), windows.end(),
                     [](const HeapWindow& a, const HeapWindow& b) { return a.at_ns < b.at_ns; });
}

}  // namespace dial9::analysis
