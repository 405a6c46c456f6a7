// SPDX-License-Identifier: Apache-2.0
#include "analysis/report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "analysis/counts.h"
#include "analysis/delays.h"
#include "analysis/finders.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/polls.h"
#include "analysis/shed.h"

namespace dial9::analysis {
namespace {

// Writes "key": value pairs of one object.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void end() { out_ += '}'; }
  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_json_string(out_, value);
  }
  void text_or_null(std::string_view key, std::string_view value) {
    begin(key);
    if (value.empty()) {
      out_ += "null";
    } else {
      append_json_string(out_, value);
    }
  }
  void number(std::string_view key, std::uint64_t value) {
    begin(key);
    append_json_number(out_, value);
  }
  void number_or_null(std::string_view key, std::uint64_t value) {
    begin(key);
    if (value == kUnknownNs) {
      out_ += "null";
    } else {
      append_json_number(out_, value);
    }
  }
  void begin(std::string_view key) {
    out_ += is_first_ ? "" : ", ";
    is_first_ = false;
    append_json_string(out_, key);
    out_ += ": ";
  }

 private:
  std::string& out_;
  bool is_first_ = true;
};

std::uint64_t relative(const Trace& trace, std::uint64_t at_ns) {
  return at_ns == kUnknownNs ? kUnknownNs : at_ns - std::min(at_ns, trace.begin_ns);
}

void append_finding(std::string& out, const Trace& trace, const Finding& finding) {
  ObjectWriter object(out);
  object.text("kind", to_string(finding.kind));
  object.text("severity", to_string(finding.severity));
  object.text("message", finding.message);
  object.number("count", finding.count);
  object.number_or_null("worst_ns", finding.worst_ns);
  object.text_or_null("at", moment_text(trace, finding.at_ns));
  object.number_or_null("at_ns", relative(trace, finding.at_ns));
  const bool has_length = finding.at_ns != kUnknownNs && finding.end_ns != kUnknownNs;
  object.number_or_null("duration_ns", has_length ? finding.end_ns - finding.at_ns : kUnknownNs);
  object.text_or_null("where", finding.where);
  object.number_or_null("worker", finding.lane == kNoIndex
                                      ? kUnknownNs
                                      : std::uint64_t{trace.lanes[finding.lane].worker});
  object.text_or_null("task",
                      finding.task == kNoIndex ? "" : std::to_string(trace.tasks.id[finding.task]));
  object.begin("evidence");
  out += '[';
  for (std::size_t i = 0; i < finding.evidence.size(); ++i) {
    out += i == 0 ? "" : ", ";
    append_json_string(out, finding.evidence[i]);
  }
  out += ']';
  object.text("next", finding.next);
  object.end();
}

// Units by class, of those that were left out.
void append_shed(std::string& out, const ShedWindows& shed) {
  ObjectWriter object(out);
  for (std::size_t c = 0; c < kShedKinds.size(); ++c) {
    const auto kind = static_cast<ShedKind>(c);
    if (shed.shed(kind) != 0) {
      object.number(kShedKinds[c], shed.shed(kind));
    }
  }
  object.end();
}

std::string head(const Trace& trace) {
  const PollSummary polls = summarize_polls(trace);
  const DelaySummary delays = summarize_delays(trace);
  std::string out;
  const std::string at_least = trace.is_truncated() ? "at least " : "";
  out += at_least + counted(trace.events, "event") + " over " + at_least +
         human_duration(trace.duration_ns()) + ", from " + moment_text(trace, trace.begin_ns) +
         "\n";
  out += at_least + counted(trace.lanes.size(), "worker") + ", " +
         counted(trace.tasks.size(), "task") + ", " + counted(trace.polls.size(), "poll") + ", " +
         counted(trace.spans.size(), "span") + "\n";
  const ShedWindows shed(trace);
  for (const std::string& line : shed.lines()) {
    out += "left out to keep within the budget: " + line + "\n";
  }
  if (polls.complete != 0) {
    if (shed.shed(ShedKind::kPolls) != 0) {
      out += "about " + counted(count_of(polls.estimated_complete + 0.5), "poll") +
             " in all; of those that were kept:\n";
    }
    out += "polls: " + spread_text(polls.durations);
    out += polls.incomplete == 0
               ? "\n"
               : "; " + human_count(polls.incomplete) + " with an end that wasn't recorded\n";
    out += "ready delay: ";
    out += delays.known.count() == 0 ? "unknown" : spread_text(delays.known);
    out += " (" + counted(delays.polls(Coverage::kKnown), "poll") + " known, " +
           human_count(delays.polls(Coverage::kInferred)) + " from a spawn, " +
           human_count(delays.polls(Coverage::kMissing)) + " unknown)\n";
  }
  if (trace.inversions != 0) {
    out +=
        counted(trace.inversions, "inversion") + ": records that went back in time, put in order\n";
  }
  if (trace.hit_memory_limit) {
    out += "the memory limit was reached: the rest of the trace is not in this report\n";
  }
  return out;
}

}  // namespace

std::string moment_text(const Trace& trace, std::uint64_t at_ns) {
  if (at_ns == kUnknownNs) {
    return {};
  }
  if (const auto realtime_ns = trace.realtime_ns(at_ns)) {
    return iso_time(*realtime_ns);
  }
  std::array<char, 48> text;
  const std::uint64_t from_start_ns = relative(trace, at_ns);
  std::snprintf(text.data(), text.size(), "+%llu.%06llus",
                static_cast<unsigned long long>(from_start_ns / 1'000'000'000),
                static_cast<unsigned long long>(from_start_ns / 1'000 % 1'000'000));
  return text.data();
}

std::string report_text(const Trace& trace, const std::vector<Finding>& findings) {
  std::string out = head(trace);
  out += findings.empty() ? "\nno findings\n" : "";
  std::size_t number = 0;
  for (const Finding& finding : findings) {
    out += "\n" + std::to_string(++number) + ". " + std::string(to_string(finding.severity)) + " " +
           std::string(to_string(finding.kind)) + ": " + to_printable(finding.message) + "\n";
    if (finding.at_ns != kUnknownNs) {
      out += "   when: " + moment_text(trace, finding.at_ns);
      out += finding.worst_ns == kUnknownNs ? "\n"
                                            : ", worst " + human_duration(finding.worst_ns) + "\n";
    }
    for (const std::string& line : finding.evidence) {
      out += "   - " + to_printable(line) + "\n";
    }
    out += "   next: " + finding.next + "\n";
  }
  return out;
}

std::string report_json(const Trace& trace, const std::vector<Finding>& findings) {
  std::string out = "{\"trace\": ";
  ObjectWriter object(out);
  // What was counted is all that there is only where all was read.
  const auto counted = [&](const char* name, const char* at_least, std::uint64_t value) {
    object.number_or_null(name, trace.is_truncated() ? kUnknownNs : value);
    object.number(at_least, value);
  };
  counted("events", "events_at_least", trace.events);
  object.text("begin", moment_text(trace, trace.begin_ns));
  counted("duration_ns", "duration_at_least_ns", trace.duration_ns());
  counted("workers", "workers_at_least", trace.lanes.size());
  counted("tasks", "tasks_at_least", trace.tasks.size());
  counted("polls", "polls_at_least", trace.polls.size());
  counted("spans", "spans_at_least", trace.spans.size());
  object.number_or_null("lost_events", trace.all_lost_events().value_or(kUnknownNs));
  object.number("lost_events_at_least", trace.lost_events());
  object.begin("shed");
  append_shed(out, ShedWindows(trace));
  counted("inversions", "inversions_at_least", trace.inversions);
  object.begin("truncated");
  out += trace.is_truncated() ? "true" : "false";
  object.end();
  out += ", \"findings\": [";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    append_finding(out, trace, findings[i]);
  }
  out += findings.empty() ? "]}\n" : "\n]}\n";
  return out;
}

}  // namespace dial9::analysis
