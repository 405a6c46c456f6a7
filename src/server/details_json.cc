// See details_json.h.
// Strongest property: a fact that isn't known says why, where the trace tells.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#include "server/details_json.h"

#include <cinttypes>

#include "server/facts.h"
#include "server/json.h"

namespace dial9::server {
namespace {

using analysis::kNoIndex;
using analysis::kUnknownNs;

constexpr std::size_t kMaxBlocks = 20;

json details(const char* what, std::string title, json index, double at_ns, json dur_ns, json lane,
             json task, json facts) {
  return {{"what", what},
          {"title", std::move(title)},
          {"index", std::move(index)},
          {"at_ns", at_ns},
          {"dur_ns", std::move(dur_ns)},
          {"lane", std::move(lane)},
          {"task", std::move(task)},
          {"facts", std::move(facts)}};
}

json task_or_null(const analysis::Trace& trace, std::uint32_t task) {
  return task == kNoIndex ? json() : json(std::to_string(trace.tasks.id[task]));
}

std::string_view block_name(analysis::BlockKind kind) {
  switch (kind) {
    case analysis::BlockKind::kCall:
      return "Blocked in";
    case analysis::BlockKind::kLock:
      return "Waited for a lock";
    case analysis::BlockKind::kOffCpu:
      return "Off the CPU";
    case analysis::BlockKind::kPreempted:
      return "Preempted";
  }
  return "Blocked";
}

// The calls, locks and switches inside a poll.
void add_blocks(const Run& run, std::uint32_t poll, Facts& facts) {
  const auto& trace = run.trace();
  const auto& blocks = trace.blocks;
  std::size_t low = 0;
  std::size_t high = blocks.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (blocks[middle].start_ns < trace.polls.start_ns[poll]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::size_t shown = 0;
  std::size_t hidden = 0;
  for (; low < blocks.size() && blocks[low].start_ns <= trace.polls.end_ns[poll]; ++low) {
    if (blocks[low].poll != poll) continue;
    if (shown == kMaxBlocks) {
      ++hidden;
      continue;
    }
    ++shown;
    std::string name(block_name(blocks[low].kind));
    const std::string_view call = trace.names.text(blocks[low].call);
    if (!call.empty()) name += " " + std::string(call);
    if (blocks[low].owner_tid != 0) {
      name += " held by thread " + std::to_string(blocks[low].owner_tid);
    }
    facts.duration(name, blocks[low].duration_ns);
    facts.text("at", stack_text(run, blocks[low].stack));
  }
  if (hidden != 0) facts.count("More blocked calls", hidden);
}

}  // namespace

json poll_json(const Run& run, std::uint32_t poll) {
  const auto& trace = run.trace();
  const auto& polls = trace.polls;
  Facts facts(run);
  facts.text("Spawned at", trace.names.text(polls.spawn_loc[poll]));
  const auto source = polls.ready_source[poll];
  facts.duration("Ready delay", polls.delay_ns(poll));
  facts.text("Known by", analysis::describe(source));
  if (polls.ready_ns[poll] != kUnknownNs) facts.moment("Ready since", polls.ready_ns[poll]);
  if (polls.wake[poll] != kNoIndex) {
    const std::uint32_t waker = trace.wakes.waker[polls.wake[poll]];
    if (waker != kNoIndex) facts.task("Woken by", waker);
  }
  if (polls.local_queue[poll] != analysis::kUnknownDepth) {
    facts.count("Local queue", polls.local_queue[poll]);
  }
  if ((polls.flags[poll] & analysis::kPollOpen) != 0) {
    facts.text("Open", "still running when the trace ends");
  }
  if ((polls.flags[poll] & analysis::kPollEndLost) != 0) {
    facts.text("End", "not recorded: shown until the next poll");
  }
  add_blocks(run, poll, facts);
  return details("poll", "Poll", poll, run.relative(polls.start_ns[poll]), polls.duration_ns(poll),
                 polls.lane[poll], task_or_null(trace, polls.task[poll]), facts.take());
}

json park_json(const Run& run, std::uint32_t park) {
  const auto& parks = run.trace().parks;
  Facts facts(run);
  facts.duration("Kernel wait", parks.kernel_wait_ns[park]);
  if (parks.cpu_start_ns[park] != kUnknownNs && parks.cpu_end_ns[park] != kUnknownNs &&
      parks.cpu_end_ns[park] >= parks.cpu_start_ns[park]) {
    facts.duration("CPU time meanwhile", parks.cpu_end_ns[park] - parks.cpu_start_ns[park]);
  }
  if (parks.tid[park] != 0) facts.text("Thread", std::to_string(parks.tid[park]));
  if ((parks.flags[park] & analysis::kParkOpen) != 0) {
    facts.text("Open", "still parked when the trace ends");
  }
  if ((parks.flags[park] & analysis::kParkStartLost) != 0) {
    facts.text("Start", "not recorded");
  }
  if ((parks.flags[park] & analysis::kParkEndLost) != 0) {
    facts.text("End", "not recorded: shown until the next poll");
  }
  return details("park", "Park", nullptr, run.relative(parks.start_ns[park]),
                 parks.end_ns[park] - parks.start_ns[park], parks.lane[park], nullptr,
                 facts.take());
}

namespace {

// Where the span's time went, and why some of it isn't known.
json parts_json(const analysis::SpanTime& time) {
  json unknown = json::array();
  for (std::size_t i = 0; i < analysis::kUnknownTimes; ++i) {
    if (time.unknown_by[i] == 0) continue;
    unknown.push_back({{"ns", time.unknown_by[i]},
                       {"why", analysis::describe(static_cast<analysis::UnknownTime>(i))}});
  }
  return {{"on_cpu_ns", time.on_cpu_ns},         {"blocked_ns", time.blocked_ns},
          {"async_wait_ns", time.async_wait_ns}, {"scheduler_delay_ns", time.scheduler_delay_ns},
          {"unknown_ns", time.unknown_ns()},     {"unknown", std::move(unknown)}};
}

}  // namespace

json span_json(const Run& run, std::uint32_t span) {
  const auto& trace = run.trace();
  const auto& spans = trace.spans;
  Facts facts(run);
  const std::uint64_t length = spans.end_ns[span] - spans.start_ns[span];
  facts.duration("On a worker", spans.active_ns[span]);
  if (spans.poll_count[span] != 0) facts.count("Polls", spans.poll_count[span]);
  if (spans.id[span] != 0) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%016" PRIx64, spans.id[span]);  // as the CLI takes it
    facts.text("Id", text);
  }
  const std::uint32_t parent = spans.parent[span];
  if (parent != kNoIndex) facts.text("Inside", trace.names.text(spans.name[parent]));
  const std::uint8_t flags = spans.flags[span];
  if ((flags & analysis::kSpanOpen) != 0) facts.text("Open", "not finished when the trace ends");
  if ((flags & analysis::kSpanCancelled) != 0) facts.text("Ended", "without completing");
  if ((flags & analysis::kSpanStartLost) != 0) facts.text("Start", "not recorded");
  if ((flags & analysis::kSpanEndInferred) != 0) facts.text("End", "not recorded: its last exit");
  const analysis::Range fields = spans.fields[span];
  for (std::uint32_t i = fields.first; i < fields.last; ++i) {
    facts.cell(trace.names.text(trace.span_fields[i].name), trace.span_fields[i].cell, {});
  }
  const std::string_view name = trace.names.text(spans.name[span]);
  json out = details("span", "Span " + std::string(name.empty() ? "without a name" : name), span,
                     run.relative(spans.start_ns[span]), length, nullptr,
                     task_or_null(trace, spans.task[span]), facts.take());
  out["has_id"] = spans.id[span] != 0;
  out["parts"] = parts_json(run.span_times().of(span));
  return out;
}

json event_json(const Run& run, EventRef event) {
  const auto& trace = run.trace();
  const auto& table = trace.custom[event.table];
  Facts facts(run);
  for (std::size_t i = 0; i < table.fields.size(); ++i) {
    facts.cell(trace.names.text(table.fields[i].name), table.cell(event.row, i),
               trace.names.text(table.fields[i].unit));
  }
  json out = details("event", std::string(trace.names.text(table.name)),
                     run.event_index(event.table, event.row), run.relative(table.at_ns[event.row]),
                     nullptr, nullptr, nullptr, facts.take());
  for (std::size_t i = 0; i < table.fields.size(); ++i) {
    const analysis::Cell cell = table.cell(event.row, i);
    if (cell.type != analysis::CellType::kStack) continue;
    out["frames"] = frames_json(run, static_cast<std::uint32_t>(cell.bits));
    break;
  }
  return out;
}

}  // namespace dial9::server
