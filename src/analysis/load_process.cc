// Handlers for what a process, its clocks and the recorder itself say, and for blocked threads.
// Spec: docs/spec/events.md, "Process".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/loader_impl.h"
#include "analysis/shed_rate.h"
#include "format/value.h"

namespace dial9::analysis {

using format::Event;

namespace {

// Only a thread that stood has a stack.
LockKind lock_kind(std::uint64_t told, bool has_stack) {
  if (told == 0 && has_stack) {
    return LockKind::kMutex;
  }
  return told == 1 ? LockKind::kMutex : told == 2 ? LockKind::kStrand : LockKind::kUnknown;
}

}  // namespace

void Loader::Impl::on_blocking_call(const Event& event, const Plan& plan) {
  Block block;
  block.start_ns = event.timestamp_ns;
  block.duration_ns = number(event, plan.field[3], 0);
  block.kind = BlockKind::kCall;
  block.tid = number32(event, plan.field[0], 0);
  block.call = text(event, plan.field[2]);
  block.stack = stack(event, plan.field[4]);
  blocks_.push_back(block);
  block_task_ids_.push_back(identity(event, plan.field[1], 0));
  touch(block.end_ns());
}

void Loader::Impl::on_lock_wait(const Event& event, const Plan& plan) {
  Block block;
  block.start_ns = event.timestamp_ns;
  block.duration_ns = number(event, plan.field[4], 0);
  block.kind = BlockKind::kLock;
  block.tid = number32(event, plan.field[0], 0);
  block.lock = identity(event, plan.field[2], 0);
  block.owner_tid = number32(event, plan.field[3], 0);
  block.stack = stack(event, plan.field[5]);
  block.is_truncated = number(event, plan.field[6], 0) != 0;
  block.lock_kind = lock_kind(number(event, plan.field[7], 0), block.stack != kNoIndex);
  blocks_.push_back(block);
  block_task_ids_.push_back(identity(event, plan.field[1], 0));
  touch(block.end_ns());
}

void Loader::Impl::on_resource_usage(const Event& event, const Plan& plan) {
  ResourceSample sample;
  sample.at_ns = event.timestamp_ns;
  sample.user_cpu_ns = number(event, plan.field[0], kUnknownNs);
  sample.system_cpu_ns = number(event, plan.field[1], kUnknownNs);
  sample.rss_bytes = number(event, plan.field[2], kUnknownNs);
  sample.max_rss_bytes = number(event, plan.field[3], kUnknownNs);
  sample.major_faults = number(event, plan.field[4], kUnknownNs);
  sample.involuntary_context_switches = number(event, plan.field[5], kUnknownNs);
  trace_.resources.push_back(sample);
  if (sample.rss_bytes != kUnknownNs) {
    add_sample(kNoName, Series::Kind::kResidentBytes, sample.at_ns,
               static_cast<double>(sample.rss_bytes));
  }
}

void Loader::Impl::on_clock_sync(const Event& event, const Plan& plan) {
  const std::uint64_t realtime_ns = number(event, plan.field[0], 0);
  if (realtime_ns != 0) {
    trace_.anchors.push_back({event.timestamp_ns, realtime_ns});
  }
}

void Loader::Impl::on_metadata(const Event& event, const Plan& plan) {
  if (plan.field[0] < 0) {
    return;
  }
  const format::Value& entries = event.values[static_cast<std::size_t>(plan.field[0])];
  for (format::ElementCursor cursor(entries); cursor.next();) {
    if (cursor.is_map()) {
      trace_.metadata.push_back({event.timestamp_ns, std::string(cursor.key().text()),
                                 std::string(cursor.value().text())});
      if (is_writer_that_tells_loss(cursor.key().text(), cursor.value().text())) {
        trace_.inputs.back().tells_loss = true;
      } else if (cursor.key().text() == "boot_id") {
        run_ = trace_.names.intern(cursor.value().text());
      } else if (cursor.key().text() == "segment.index") {
        gaps_.add(std::string(trace_.names.text(run_)), cursor.value().text(), event.timestamp_ns);
        close_damage(event.timestamp_ns);
      }
    }
  }
}

// A segment of the run begins: what the one before it had after its damage is a loss up to here.
void Loader::Impl::close_damage(std::uint64_t at_ns) {
  const auto damaged = damaged_at_ns_.find(run_);
  if (damaged == damaged_at_ns_.end()) {
    return;
  }
  const std::uint64_t from_ns = damaged->second - std::min(damaged->second, kOlderRecordsNs);
  damaged_at_ns_.erase(damaged);
  trace_.loss.push_back(
      {at_ns, trace_.names.intern(kDamagedSegment), 0, std::min(from_ns, at_ns), at_ns});
}

void Loader::Impl::add_gaps() {
  for (const SegmentGaps::Gap& gap : gaps_.gaps()) {
    trace_.loss.push_back(
        {gap.end_ns, trace_.names.intern(kMissingSegments), 0, gap.begin_ns, gap.end_ns});
  }
}

void Loader::Impl::on_loss(const Event& event, const Plan& plan) {
  const std::uint64_t first_ns = number(event, plan.field[2], event.timestamp_ns);
  trace_.inputs.back().tells_loss = true;
  trace_.loss.push_back({event.timestamp_ns, text(event, plan.field[0]),
                         number(event, plan.field[1], 0), first_ns,
                         std::max(first_ns, number(event, plan.field[3], event.timestamp_ns))});
}

void Loader::Impl::on_shed(const Event& event, const Plan& plan) {
  ShedRecord record;
  record.at_ns = event.timestamp_ns;
  record.kind = text(event, plan.field[0]);
  if (plan.field[1] >= 0) {
    record.keep_one_in = shed_rate(event.values[static_cast<std::size_t>(plan.field[1])]);
  }
  record.since_ns = number(event, plan.field[2], event.timestamp_ns);
  record.kept = number(event, plan.field[3], 0);
  record.shed = number(event, plan.field[4], 0);
  trace_.shed.push_back(record);
}

}  // namespace dial9::analysis
