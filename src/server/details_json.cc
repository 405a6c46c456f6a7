// See details_json.h.
// Strongest property: a fact that isn't known says why, where the trace tells.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#include "server/details_json.h"

#include <cinttypes>
#include <nlohmann/json.hpp>

namespace dial9::server {
namespace {

using analysis::Cell;
using analysis::CellType;
using analysis::kNoIndex;
using analysis::kUnknownNs;
using nlohmann::json;

constexpr std::size_t kMaxBlocks = 20;
constexpr double kExactInteger = 9007199254740992.0;  // 2^53: above, JSON numbers lose digits

// Collects facts in the order in which they are shown.
class Facts {
 public:
  explicit Facts(const Run& run) : run_(run) {}

  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) add(name, value, nullptr);
  }
  void duration(std::string_view name, std::uint64_t ns) {
    add(name, ns == kUnknownNs ? json() : json(ns), "ns");
  }
  void count(std::string_view name, std::uint64_t value) { add(name, value, nullptr); }
  void moment(std::string_view name, std::uint64_t at_ns) {
    add(name, nullptr, nullptr);
    facts_.back()["at_ns"] = run_.relative(at_ns);
  }
  void task(std::string_view name, std::uint32_t task) {
    add(name, nullptr, nullptr);
    facts_.back()["task"] = std::to_string(run_.trace().tasks.id[task]);
  }
  void cell(std::string_view name, const Cell& cell, std::string_view unit) {
    add(name, value_of(cell), unit.empty() ? json() : json(unit));
  }
  json take() { return std::move(facts_); }

 private:
  void add(std::string_view name, json value, json unit) {
    facts_.push_back({{"name", name}, {"value", std::move(value)}, {"unit", std::move(unit)}});
  }
  json value_of(const Cell& cell) const {
    switch (cell.type) {
      case CellType::kAbsent:
        return {};
      case CellType::kBool:
        return cell.bits != 0 ? "true" : "false";
      case CellType::kText:
        return std::string(run_.trace().names.text(static_cast<analysis::NameId>(cell.bits)));
      case CellType::kU64:
        if (cell.number() > kExactInteger) return std::to_string(cell.bits);
        return cell.bits;
      case CellType::kI64:
        if (std::abs(cell.number()) > kExactInteger) {
          return std::to_string(static_cast<std::int64_t>(cell.bits));
        }
        return static_cast<std::int64_t>(cell.bits);
      case CellType::kF64:
        return cell.number();
    }
    return {};
  }

  const Run& run_;
  json facts_ = json::array();
};

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
void add_blocks(const analysis::Trace& trace, std::uint32_t poll, Facts& facts) {
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
  add_blocks(trace, poll, facts);
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

json span_json(const Run& run, std::uint32_t span) {
  const auto& trace = run.trace();
  const auto& spans = trace.spans;
  Facts facts(run);
  const std::uint64_t length = spans.end_ns[span] - spans.start_ns[span];
  facts.duration("On a worker", spans.active_ns[span]);
  if (spans.active_ns[span] != kUnknownNs && spans.active_ns[span] <= length) {
    facts.duration("Waiting", length - spans.active_ns[span]);
  }
  if (spans.poll_count[span] != 0) facts.count("Polls", spans.poll_count[span]);
  if (spans.id[span] != 0) {
    char text[24];
    std::snprintf(text, sizeof text, "%016" PRIx64, spans.id[span]);
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
  return details("span", "Span " + std::string(name.empty() ? "without a name" : name), span,
                 run.relative(spans.start_ns[span]), length, nullptr,
                 task_or_null(trace, spans.task[span]), facts.take());
}

json event_json(const Run& run, EventRef event) {
  const auto& trace = run.trace();
  const auto& table = trace.custom[event.table];
  Facts facts(run);
  for (std::size_t i = 0; i < table.fields.size(); ++i) {
    facts.cell(trace.names.text(table.fields[i].name), table.cell(event.row, i),
               trace.names.text(table.fields[i].unit));
  }
  return details("event", std::string(trace.names.text(table.name)),
                 run.event_index(event.table, event.row), run.relative(table.at_ns[event.row]),
                 nullptr, nullptr, nullptr, facts.take());
}

}  // namespace dial9::server
