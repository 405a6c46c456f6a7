// See summary_json.h.
// Strongest property: unknown is null.
// Spec: docs/spec/http_api.md, "Summary", "Findings".
// SPDX-License-Identifier: Apache-2.0
#include "server/summary_json.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/bill.h"
#include "analysis/platform_stalls.h"
#include "analysis/shed.h"
#include "server/anchors_json.h"
#include "server/json.h"
#include "server/series_columns.h"

namespace dial9::server {
namespace {

constexpr std::size_t kMaxAnchors = 256;
constexpr std::size_t kMaxLosses = 4096;
constexpr std::size_t kMaxStalls = 4096;
constexpr std::size_t kMaxFindings = 1000;
constexpr std::size_t kMaxTypes = 1000;
constexpr std::size_t kMaxFiles = 1000;
constexpr std::size_t kMaxSampleRowsListed = 4096;
constexpr std::size_t kMaxLanes = 16'384;
constexpr std::size_t kMaxFields = 256;  // of a type
constexpr std::size_t kMaxMetadata = 1000;
constexpr std::size_t kMaxMetadataBytes = 4096;  // of a value

json text_or_null(std::string_view text) { return text.empty() ? json() : json(text); }

json anchors_json(const Run& run, const ThinAnchors& thin) {
  json out = json::array();
  for (const analysis::Anchor& anchor : thin.anchors) {
    out.push_back({{"at_ns", run.relative(anchor.monotonic_ns)},
                   {"realtime_ns", std::to_string(anchor.realtime_ns)}});
  }
  return out;
}

json workers_json(const Run& run) {
  const auto& trace = run.trace();
  json out = json::array();
  for (std::uint32_t i = 0; i < std::min(trace.lanes.size(), kMaxLanes); ++i) {
    const auto& lane = trace.lanes[i];
    out.push_back({{"lane", i},
                   {"worker", lane.worker},
                   {"name", lane_name(trace, i)},
                   {"runtime", text_or_null(trace.names.text(lane.runtime))},
                   {"tid", lane.tid == 0 ? json() : json(lane.tid)},
                   {"polls", lane.polls.size()},
                   {"busy_ns", lane.busy_ns},
                   {"parked_ns", lane.parks.empty() ? json() : json(lane.parked_ns)}});
  }
  return out;
}

// Rows of samples: a worker's lane, or a thread that is none.
json sample_rows_json(const Run& run) {
  const auto& trace = run.trace();
  json out = json::array();
  for (std::size_t i = 0; i < trace.sample_rows.size(); ++i) {
    if (out.size() == kMaxSampleRowsListed) break;
    const auto& row = trace.sample_rows[i];
    const bool is_lane = row.lane != analysis::kNoIndex;
    out.push_back({{"row", i},
                   {"lane", is_lane ? json(row.lane) : json()},
                   {"tid", is_lane ? json() : json(row.tid)},
                   {"name", text_or_null(trace.names.text(row.thread_name))},
                   {"count", row.samples.size()}});
  }
  return out;
}

bool is_number(format::FieldType type) {
  switch (type) {
    case format::FieldType::kI64:
    case format::FieldType::kF64:
    case format::FieldType::kVarint:
    case format::FieldType::kU8:
    case format::FieldType::kU16:
    case format::FieldType::kU32:
      return true;
    default:
      return false;
  }
}

json custom_json(const Run& run) {
  const auto& trace = run.trace();
  json out = json::array();
  for (const auto& table : trace.custom) {
    if (!table.has_timestamp || table.size() == 0) continue;
    if (out.size() == kMaxTypes) break;  // nobody looks through more, and each is compared below
    json fields = json::array();
    for (const auto& field : table.fields) {
      if (fields.size() == kMaxFields) break;
      fields.push_back({{"name", trace.names.text(field.name)},
                        {"unit", text_or_null(trace.names.text(field.unit))},
                        {"kind", text_or_null(trace.names.text(field.kind))},
                        {"is_number", is_number(field.type)}});
    }
    const auto name = trace.names.text(table.name);
    const auto same =
        std::ranges::find_if(out, [&](const json& row) { return row["type"] == name; });
    if (same == out.end()) {
      out.push_back({{"type", name}, {"count", table.size()}, {"fields", std::move(fields)}});
    } else {  // writers that disagreed about the fields: one row for the reader
      (*same)["count"] = (*same)["count"].get<std::uint64_t>() + table.size();
    }
  }
  return out;
}

std::string_view kind_text(analysis::Series::Kind kind) {
  switch (kind) {
    case analysis::Series::Kind::kQueueDepth:
      return "depth";
    case analysis::Series::Kind::kAliveTasks:
      return "tasks";
    case analysis::Series::Kind::kResidentBytes:
      return "bytes";
    case analysis::Series::Kind::kAcceptQueue:
      return "connections";
  }
  return "depth";
}

json truncated_json(const analysis::Trace& trace) {
  if (!trace.is_truncated()) return {};
  for (const auto& input : trace.inputs) {
    if (!input.error) continue;
    const bool has_offset = input.error->offset != kNoOffset;
    return {{"message", input.name + ": " + input.error->message},
            {"offset", has_offset ? json(input.error->offset) : json()}};
  }
  return {{"message",
           "only the first part was loaded: the server's memory bound was reached; "
           "start it with a larger --memory"},
          {"offset", nullptr}};
}

json files_json(const analysis::Trace& trace) {
  json out = json::array();
  for (const auto& input : trace.inputs) {
    if (out.size() == kMaxFiles) break;
    out.push_back({{"name", input.name},
                   {"bytes", input.bytes},
                   {"events", input.events},
                   {"error", input.error ? json(input.error->message) : json()}});
  }
  return out;
}

json loss_json(const Run& run) {
  json out = json::array();
  for (const auto& loss : run.trace().loss) {
    if (out.size() == kMaxLosses) break;
    out.push_back({{"cause", run.trace().names.text(loss.cause)},
                   {"count", loss.count != 0 ? json(loss.count) : json()},
                   {"first_ns", run.relative(loss.first_ns)},
                   {"last_ns", run.relative(loss.last_ns)}});
  }
  return out;
}

// Those that findings were excused by come first into the cap; the rest may be the process's doing.
json stalls_json(const Run& run) {
  json out = json::array();
  const auto& stalls = run.trace().platform_stalls;
  for (const bool wants_excuses : {true, false}) {
    for (std::size_t i = 0; i < stalls.size() && out.size() < kMaxStalls; ++i) {
      const analysis::PlatformStall& stall = stalls[i];
      if (analysis::is_excuse(stall) != wants_excuses) continue;
      const std::uint64_t range_ns = stall.end_ns - stall.begin_ns;
      const bool is_known = stall.stalled_ns != analysis::kUnknownNs &&
                            stall.cause != analysis::StallCause::kClockStep &&
                            stall.cause != analysis::StallCause::kSuspend;
      out.push_back({{"cause", analysis::to_string(stall.cause)},
                     {"text", analysis::describe(stall.cause)},
                     {"begin_ns", run.relative(stall.begin_ns)},
                     {"end_ns", run.relative(stall.end_ns)},
                     {"stalled_ns", is_known ? json(std::min(stall.stalled_ns, range_ns)) : json()},
                     {"is_excuse", wants_excuses}});
    }
  }
  return out;
}

}  // namespace

json moment_json(const Run& run, std::uint64_t at_ns) {
  const auto at = run.known_relative(at_ns);
  return at ? json(*at) : json();
}

json duration_json(std::uint64_t ns) { return ns == analysis::kUnknownNs ? json() : json(ns); }

namespace {

json queues_json(const analysis::Trace& trace) {
  json out = json::array();
  for (std::size_t i = 0; i < std::min(trace.series.size(), kMaxQueues); ++i) {
    out.push_back({{"series", i},
                   {"name", trace.names.text(trace.series[i].name)},
                   {"kind", kind_text(trace.series[i].kind)}});
  }
  return out;
}

json types_json(const analysis::Trace& trace) {
  json out = json::array();
  for (const auto& type : trace.by_type) {
    if (out.size() == kMaxTypes) break;
    out.push_back({{"type", trace.names.text(type.name)}, {"count", type.count}});
  }
  return out;
}

// Puts the number of keys into `total`.
json metadata_json(const analysis::Trace& trace, std::size_t& total) {
  std::map<std::string_view, std::string_view> last;
  for (const auto& entry : trace.metadata) last[entry.key] = entry.value;
  total = last.size();
  json out = json::object();
  for (const auto& [key, value] : last) {
    if (out.size() == kMaxMetadata) break;
    const bool is_long = value.size() > kMaxMetadataBytes;
    out[std::string(key)] = std::string(value.substr(0, kMaxMetadataBytes)) + (is_long ? "…" : "");
  }
  return out;
}

json bill_json(const analysis::Trace& trace) {
  const analysis::RecorderBill bill = analysis::recorder_bill(trace);
  if (bill.bills == 0) return {};
  const json kernel_ns = bill.lacks_kernel_time ? json() : json(0);
  return {{"bills", bill.bills},
          {"elapsed_ns", bill.elapsed_ns},
          {"collector_cpu_ns", bill.collector_cpu_ns},
          {"host_cpu_ns", bill.host_cpu_ns},
          {"sample_kernel_ns", kernel_ns},
          {"bytes", bill.bytes},
          {"events", bill.events},
          {"shed", bill.shed}};
}

json shed_json(const analysis::ShedWindows& shed) {
  json out = json::array();
  for (std::size_t c = 0; c < analysis::kShedKinds.size(); ++c) {
    const auto kind = static_cast<analysis::ShedKind>(c);
    if (shed.shed(kind) == 0 && !shed.is_open(kind)) continue;
    out.push_back({{"class", analysis::kShedKinds[c]},
                   {"count", shed.shed(kind)},
                   {"most_keep_one_in", shed.most(kind)},
                   {"is_open", shed.is_open(kind)}});
  }
  return out;
}

// How many entries each list of the summary lacks; only of those that lack some.
json left_out_json(const json& summary, const analysis::Trace& trace, std::size_t metadata) {
  std::set<analysis::NameId> custom;
  for (const auto& table : trace.custom) {
    if (table.has_timestamp && table.size() != 0) custom.insert(table.name);
  }
  json out = json::object();
  const auto note = [&](const char* list, std::size_t total) {
    const std::size_t listed = summary[list].size();
    if (total > listed) out[list] = total - listed;
  };
  note("by_type", trace.by_type.size());
  note("workers", trace.lanes.size());
  note("samples", trace.sample_rows.size());
  note("metadata", metadata);
  note("files", trace.inputs.size());
  note("loss", trace.loss.size());
  note("stalls", trace.platform_stalls.size());
  note("custom", custom.size());
  note("queues", trace.series.size());
  return out;
}

}  // namespace

json summary_json(const Run& run) {
  const auto& trace = run.trace();
  const ThinAnchors anchors = thin_anchors(trace.anchors, kMaxAnchors);
  const analysis::ShedWindows shed(trace);
  const auto lost = trace.all_lost_events();
  std::size_t metadata_total = 0;
  json out = {{"name", run.name()},
              {"generation", run.generation()},
              {"origin_ns", std::to_string(trace.begin_ns)},
              {"duration_ns", trace.duration_ns()},
              {"anchors", anchors_json(run, anchors)},
              {"anchors_total", trace.anchors.size()},
              {"anchors_error_ns", anchors.error_ns},
              {"events", trace.events},
              {"by_type", types_json(trace)},
              {"workers", workers_json(run)},
              {"tasks", trace.tasks.size()},
              {"polls", trace.polls.size()},
              {"spans", trace.spans.size()},
              {"span_rows", trace.span_rows},
              {"samples", sample_rows_json(run)},
              {"samples_total", trace.samples.size()},
              {"dumps", trace.dumps.size()},
              {"metadata", metadata_json(trace, metadata_total)},
              {"truncated", truncated_json(trace)},
              {"files", files_json(trace)},
              {"loss", loss_json(run)},
              {"loss_total", lost ? json(*lost) : json()},
              {"loss_at_least", trace.lost_events()},
              {"stalls", stalls_json(run)},
              {"shed", shed.lines()},
              {"shed_classes", shed_json(shed)},
              {"bill", bill_json(trace)},
              {"inversions", trace.inversions},
              {"custom", custom_json(run)},
              {"queues", queues_json(trace)}};
  out["left_out"] = left_out_json(out, trace, metadata_total);
  return out;
}

json findings_json(const Run& run) {
  json out = json::array();
  const auto index_or_null = [](std::uint32_t index) {
    return index == analysis::kNoIndex ? json() : json(index);
  };
  for (const auto& finding : run.findings()) {
    if (out.size() == kMaxFindings) break;
    const bool has_task = finding.task != analysis::kNoIndex;
    out.push_back(
        {{"kind", analysis::to_string(finding.kind)},
         {"severity", analysis::to_string(finding.severity)},
         {"message", finding.message},
         {"count", finding.count},
         {"worst_ns", duration_json(finding.worst_ns)},
         {"at_ns", moment_json(run, finding.at_ns)},
         {"end_ns", moment_json(run, finding.end_ns)},
         {"lane", index_or_null(finding.lane)},
         {"task", has_task ? json(std::to_string(run.trace().tasks.id[finding.task])) : json()},
         {"poll", index_or_null(finding.poll)},
         {"span", index_or_null(finding.span)},
         {"where", text_or_null(finding.where)},
         {"evidence", finding.evidence},
         {"next", text_or_null(finding.next)}});
  }
  return {{"findings", std::move(out)}, {"total", run.findings().size()}};
}

}  // namespace dial9::server
