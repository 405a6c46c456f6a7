// Look-ups in a loaded trace.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "analysis/counts.h"
#include "analysis/segment_gaps.h"

namespace dial9::analysis {
namespace {

// The row in [range.first, range.last) of sorted, non-overlapping slices that covers `at_ns`.
std::uint32_t slice_at(const Column<std::uint64_t>& start_ns, const Column<std::uint64_t>& end_ns,
                       Range range, std::uint64_t at_ns) {
  std::uint32_t low = range.first;
  std::uint32_t high = range.last;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (start_ns[middle] <= at_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low != range.first && at_ns < end_ns[low - 1] ? low - 1 : kNoIndex;
}

template <class... Columns>
std::size_t sum_bytes(const Columns&... columns) {
  return (std::size_t{0} + ... + columns.bytes());
}

}  // namespace

Coverage coverage_of(ReadySource source) {
  switch (source) {
    case ReadySource::kWake:
    case ReadySource::kWakeInPoll:
      return Coverage::kKnown;
    case ReadySource::kSpawn:
      return Coverage::kInferred;
    default:
      return Coverage::kMissing;
  }
}

std::string_view describe(ReadySource source) {
  switch (source) {
    case ReadySource::kWake:
      return "woken";
    case ReadySource::kWakeInPoll:
      return "woken during its previous poll";
    case ReadySource::kSpawn:
      return "from its spawn, no wake was recorded";
    case ReadySource::kNoWake:
      return "no wake was recorded";
    case ReadySource::kFirstSeen:
      return "the task is older than the trace";
    case ReadySource::kNoTask:
      return "the poll bears no task id";
    case ReadySource::kUntracked:
      return "the task's wakes aren't recorded";
    case ReadySource::kEventsLost:
      return "events in between are missing";
  }
  return "";
}

double Cell::number() const {
  switch (type) {
    case CellType::kU64:
    case CellType::kBool:
      return static_cast<double>(bits);
    case CellType::kI64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case CellType::kF64:
      return std::bit_cast<double>(bits);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

bool Trace::is_truncated() const {
  return hit_memory_limit || std::any_of(inputs.begin(), inputs.end(), [](const InputFile& input) {
           return input.error.has_value();
         });
}

std::uint64_t Trace::lost_events() const {
  std::uint64_t lost = 0;
  for (const LossRecord& record : loss) {
    lost = sum_of(lost, record.count);
  }
  return lost;
}

bool Trace::has_unknown_loss() const {
  return std::any_of(loss.begin(), loss.end(), [&](const LossRecord& record) {
    return record.count == 0 && names.text(record.cause) != kRecordingOff;
  });
}

std::optional<std::uint64_t> Trace::all_lost_events() const {
  const bool is_told = std::all_of(inputs.begin(), inputs.end(),
                                   [](const InputFile& input) { return input.tells_loss; });
  if (!is_told || is_truncated() || has_unknown_loss()) {
    return std::nullopt;
  }
  return lost_events();
}

std::optional<std::uint64_t> Trace::realtime_ns(std::uint64_t at_ns) const {
  if (anchors.empty()) {
    return std::nullopt;
  }
  auto after = std::lower_bound(
      anchors.begin(), anchors.end(), at_ns,
      [](const Anchor& anchor, std::uint64_t at) { return anchor.monotonic_ns < at; });
  const Anchor* nearest = after == anchors.end() ? &anchors.back() : &*after;
  if (after != anchors.begin() && after != anchors.end()) {
    const Anchor& before = *std::prev(after);
    if (at_ns - before.monotonic_ns < after->monotonic_ns - at_ns) {
      nearest = &before;
    }
  }
  return nearest->realtime_ns + (at_ns - nearest->monotonic_ns);
}

std::string_view Trace::metadata_value(std::string_view key) const {
  for (auto entry = metadata.rbegin(); entry != metadata.rend(); ++entry) {
    if (entry->key == key) {
      return entry->value;
    }
  }
  return {};
}

std::uint32_t Trace::lane_of_worker(std::uint32_t worker) const {
  const auto found =
      std::lower_bound(lanes.begin(), lanes.end(), worker,
                       [](const Lane& lane, std::uint32_t wanted) { return lane.worker < wanted; });
  return found != lanes.end() && found->worker == worker
             ? static_cast<std::uint32_t>(found - lanes.begin())
             : kNoIndex;
}

std::uint32_t Trace::poll_at(std::uint32_t lane, std::uint64_t at_ns) const {
  return slice_at(polls.start_ns, polls.end_ns, lanes[lane].polls, at_ns);
}

std::uint32_t Trace::park_at(std::uint32_t lane, std::uint64_t at_ns) const {
  return slice_at(parks.start_ns, parks.end_ns, lanes[lane].parks, at_ns);
}

Range Trace::dumps_of_task(std::uint32_t task) const {
  const auto first_of = [this](std::uint64_t wanted) {
    std::uint32_t low = 0;
    auto high = static_cast<std::uint32_t>(dumps.size());
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (dumps[middle].task < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  return {first_of(task), first_of(std::uint64_t{task} + 1)};
}

std::size_t Trace::bytes() const {
  std::size_t total = names.bytes();
  total +=
      sum_bytes(polls.start_ns, polls.end_ns, polls.ready_ns, polls.lane, polls.task,
                polls.spawn_loc, polls.wake, polls.ready_source, polls.flags, polls.local_queue);
  total += sum_bytes(parks.start_ns, parks.end_ns, parks.kernel_wait_ns, parks.cpu_start_ns,
                     parks.cpu_end_ns, parks.lane, parks.tid, parks.flags);
  total += sum_bytes(tasks.id, tasks.spawn_ns, tasks.terminate_ns, tasks.busy_ns, tasks.first_ns,
                     tasks.last_ns, tasks.spawn_loc, tasks.polls, tasks.wakes, tasks.migrations,
                     tasks.flags);
  constexpr std::size_t kMapEntryBytes = 40;
  total += task_by_id.size() * kMapEntryBytes;
  total += sum_bytes(task_polls, wakes.at_ns, wakes.task, wakes.waker);
  total += sum_bytes(spans.start_ns, spans.end_ns, spans.active_ns, spans.id, spans.parent,
                     spans.name, spans.worker, spans.task, spans.poll_count, spans.fields,
                     spans.row, spans.flags, span_fields);
  for (const Series& one : series) {
    total += sum_bytes(one.at_ns, one.value);
  }
  for (const AcceptQueue& queue : accept_queues) {
    total += sizeof queue + queue.samples.bytes();
  }
  for (const EventTable& table : custom) {
    total += sum_bytes(table.at_ns, table.bits, table.types);
  }
  total += sum_bytes(sched, blocks, resources, platform_stalls, stacks, symbols, modules, samples,
                     dumps, heap, off_cpu, socket_waits, thread_times);
  total += heap_windows.capacity() * sizeof(HeapWindow);
  for (const MetadataEntry& entry : metadata) {
    total += sizeof entry + entry.key.size() + entry.value.size();
  }
  return total + loss.size() * sizeof(LossRecord) + anchors.size() * sizeof(Anchor) +
         shed.size() * sizeof(ShedRecord);
}

}  // namespace dial9::analysis
