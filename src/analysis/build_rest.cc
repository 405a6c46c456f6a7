// The last pass: sorts what came in any order, and puts blocked stretches and names in their
// places.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

#include "analysis/loader_impl.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

// The order of rows by time, stable; empty if they are in order already.
std::vector<std::uint32_t> order_by_time(const Column<std::uint64_t>& at_ns) {
  std::vector<std::uint32_t> order;
  bool is_sorted = true;
  for (std::size_t i = 1; i < at_ns.size() && is_sorted; ++i) {
    is_sorted = at_ns[i - 1] <= at_ns[i];
  }
  if (!is_sorted) {
    order.resize(at_ns.size());
    std::iota(order.begin(), order.end(), 0U);
    dial9::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return at_ns[a] < at_ns[b]; });
  }
  return order;
}

// `width` cells a row.
template <class T>
void permute(Column<T>& column, const std::vector<std::uint32_t>& order, std::size_t width) {
  Column<T> sorted;
  for (const std::uint32_t row : order) {
    for (std::size_t i = 0; i < width; ++i) {
      sorted.push_back(column[row * width + i]);
    }
  }
  column = std::move(sorted);
}

void sort_series(Series& series) {
  if (const auto order = order_by_time(series.at_ns); !order.empty()) {
    permute(series.at_ns, order, 1);
    permute(series.value, order, 1);
  }
}

void sort_table(EventTable& table) {
  if (const auto order = order_by_time(table.at_ns); !order.empty()) {
    permute(table.at_ns, order, 1);
    permute(table.bits, order, table.fields.size());
    permute(table.types, order, table.fields.size());
  }
}

template <class Row>
void sort_rows(Column<Row>& rows) {
  Column<std::uint64_t> at_ns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    at_ns.push_back(rows[i].at_ns);
  }
  if (const auto order = order_by_time(at_ns); !order.empty()) {
    permute(rows, order, 1);
  }
}

// The poll of the task that covers the moment.
std::uint32_t poll_of_task(const Trace& trace, std::uint32_t task, std::uint64_t at_ns) {
  const Range range = trace.tasks.polls[task];
  std::uint32_t low = range.first;
  std::uint32_t high = range.last;
  while (low < high) {  // the first that starts after the moment
    const std::uint32_t middle = low + (high - low) / 2;
    if (trace.polls.start_ns[trace.task_polls[middle]] <= at_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == range.first) {
    return kNoIndex;
  }
  const std::uint32_t poll = trace.task_polls[low - 1];
  return at_ns <= trace.polls.end_ns[poll] ? poll : kNoIndex;
}

// A handler that waits for its strand may do so while its task's poll, or another one of the
// thread that tells of it, goes on.
bool may_be_strand(const Block& block) {
  return block.kind == BlockKind::kLock && block.lock_kind != LockKind::kMutex;
}

// A wait inside a poll ends there, too; clock reads of the two records may cross by a little.
bool is_inside(const Trace& trace, std::uint32_t poll, const Block& block) {
  constexpr std::uint64_t kSlackNs = 20'000;
  const std::uint64_t poll_end_ns = trace.polls.end_ns[poll];
  return block.start_ns <= poll_end_ns &&
         block.duration_ns - std::min(block.duration_ns, kSlackNs) <= poll_end_ns - block.start_ns;
}

}  // namespace

// By the task where the record names one; else by the thread, where a worker is bound to it.
void Loader::Impl::locate_blocks() {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> lanes_of_tid;
  for (std::size_t i = 0; i < trace_.parks.size(); ++i) {
    if (trace_.parks.tid[i] == 0) {
      continue;
    }
    std::vector<std::uint32_t>& lanes = lanes_of_tid[trace_.parks.tid[i]];
    if (lanes.empty() || lanes.back() != trace_.parks.lane[i]) {  // parks are sorted by lane
      lanes.push_back(trace_.parks.lane[i]);
    }
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    block.call = settled(block.call);
    if (const auto task = trace_.task_by_id.find(block_task_ids_[i]);
        task != trace_.task_by_id.end()) {
      block.task = task->second;
      const std::uint32_t poll =
          may_be_strand(block) ? kNoIndex : poll_of_task(trace_, block.task, block.start_ns);
      block.poll = poll != kNoIndex && is_inside(trace_, poll, block) ? poll : kNoIndex;
    } else if (const auto lanes = lanes_of_tid.find(block.tid);
               lanes != lanes_of_tid.end() && !may_be_strand(block)) {
      for (const std::uint32_t lane : lanes->second) {
        const std::uint32_t poll = trace_.poll_at(lane, block.start_ns);
        if (poll != kNoIndex && is_inside(trace_, poll, block)) {
          block.poll = poll;
          block.task = trace_.polls.task[poll];
        }
      }
    }
  }
  dial9::stable_sort(blocks_.begin(), blocks_.end(),
                     [](const Block& a, const Block& b) { return a.start_ns < b.start_ns; });
  for (const Block& block : blocks_) {
    trace_.blocks.push_back(block);
  }
  blocks_ = {};
  block_task_ids_ = {};
}

// "runtime.{name}" lists worker ids, in any punctuation.
void Loader::Impl::name_lanes() {
  constexpr std::string_view kPrefix = "runtime.";
  for (const MetadataEntry& entry : trace_.metadata) {
    if (!entry.key.starts_with(kPrefix)) {
      continue;
    }
    const NameId name = trace_.names.intern(std::string_view(entry.key).substr(kPrefix.size()));
    const char* p = entry.value.data();
    const char* const end = p + entry.value.size();
    while (p != end) {
      std::uint32_t worker = 0;
      const auto [after, error] = std::from_chars(p, end, worker);
      if (error != std::errc{}) {
        ++p;
        continue;
      }
      p = after;
      for (std::uint32_t lane = trace_.lane_of_worker(worker);
           lane < trace_.lanes.size() && trace_.lanes[lane].worker == worker; ++lane) {
        trace_.lanes[lane].runtime = name;
      }
    }
  }
}

void Loader::Impl::build_rest() {
  const auto by = [](auto member) {
    return [member](const auto& a, const auto& b) { return a.*member < b.*member; };
  };
  dial9::stable_sort(trace_.metadata.begin(), trace_.metadata.end(), by(&MetadataEntry::at_ns));
  dial9::stable_sort(trace_.anchors.begin(), trace_.anchors.end(), by(&Anchor::monotonic_ns));
  dial9::stable_sort(trace_.loss.begin(), trace_.loss.end(), by(&LossRecord::first_ns));
  dial9::stable_sort(trace_.by_type.begin(), trace_.by_type.end(),
                     [](const TypeCount& a, const TypeCount& b) { return a.count > b.count; });
  std::erase_if(trace_.by_type, [](const TypeCount& type) { return type.count == 0; });
  for (LossRecord& record : trace_.loss) {
    record.cause = settled(record.cause);
  }
  for (Series& series : trace_.series) {
    sort_series(series);
  }
  for (EventTable& table : trace_.custom) {
    sort_table(table);
  }
  std::erase_if(trace_.custom, [](const EventTable& table) { return table.size() == 0; });
  sort_rows(trace_.sched);
  sort_rows(trace_.off_cpu);
  sort_rows(trace_.socket_waits);
  sort_rows(trace_.thread_times);
  sort_rows(trace_.resources);
  for (AcceptQueue& queue : trace_.accept_queues) {
    sort_rows(queue.samples);
  }
  build_platform();
  locate_blocks();
  name_lanes();
}

}  // namespace dial9::analysis
