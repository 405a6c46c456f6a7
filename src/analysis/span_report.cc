// SPDX-License-Identifier: Apache-2.0
#include "analysis/span_report.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/lack.h"
#include "analysis/shed.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kNameWidth = 28;
constexpr std::size_t kCellWidth = 10;

std::string cell(std::string_view text) {
  // Counts letters, not bytes: "µs" is three of them.
  const auto letters = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
  return std::string(letters < kCellWidth ? kCellWidth - letters : 1, ' ') + std::string(text);
}

std::string name_text(const Trace& trace, NameId name) {
  const std::string text = to_printable(trace.names.text(name));
  return text.empty() ? "(without a name)" : text;
}

std::string share(std::uint64_t part, std::uint64_t total) {
  return total == 0 ? "-" : human_share(static_cast<double>(part) / static_cast<double>(total));
}

void append_row(std::string& out, const Trace& trace, const SpanGroup& group) {
  std::string name = name_text(trace, group.name);
  name.resize(std::max(name.size(), kNameWidth), ' ');
  const std::uint64_t total_ns = group.time.sum_ns();
  out += name + cell(human_count(group.lengths.count()));
  for (const std::uint64_t ns :
       {group.lengths.quantile(0.5), group.lengths.quantile(0.99), group.lengths.max()}) {
    out += cell(group.lengths.count() == 0 ? "-" : human_duration(ns));
  }
  for (const std::uint64_t ns :
       {group.time.on_cpu_ns, group.time.blocked_ns, group.time.async_wait_ns,
        group.time.scheduler_delay_ns, group.time.unknown_ns()}) {
    out += cell(share(ns, total_ns));
  }
  out += "\n";
  if (group.open != 0) {
    out += "  " + human_count(group.open) + " more not finished in the trace\n";
  }
  if (group.time.unknown_ns() * 2 > total_ns) {
    out += "  mostly unknown: " + std::string(describe(group.time.main_reason())) + "\n";
  }
}

}  // namespace

std::vector<SpanGroup> group_spans(const Trace& trace) {
  const SpanTimes times(trace);
  std::vector<SpanGroup> groups;
  std::unordered_map<NameId, std::size_t> group_of;
  for (std::uint32_t i = 0; i < trace.spans.size(); ++i) {
    const auto [at, is_new] = group_of.try_emplace(trace.spans.name[i], groups.size());
    if (is_new) {
      groups.emplace_back().name = trace.spans.name[i];
    }
    SpanGroup& group = groups[at->second];
    group.time.add(times.of(i));
    if ((trace.spans.flags[i] & kSpanOpen) != 0) {
      ++group.open;
    } else {
      group.lengths.add(trace.spans.end_ns[i] - trace.spans.start_ns[i]);
    }
  }
  dial9::stable_sort(groups.begin(), groups.end(), [](const SpanGroup& a, const SpanGroup& b) {
    return a.time.sum_ns() > b.time.sum_ns();
  });
  return groups;
}

std::string span_text(const Trace& trace, const std::vector<SpanGroup>& groups, std::size_t limit) {
  std::string out;
  for (const std::string& line : ShedWindows(trace).lines()) {
    out +=
        "left out to keep within the recorder's budget, so counts are lower bounds: " + line + "\n";
  }
  if (groups.empty()) {
    return out + lack_text(trace, "spans", "DIAL9_SPAN and dial9::span (dial9/span.h)") + "\n";
  }
  std::string head_name = "span";
  head_name.resize(kNameWidth, ' ');
  out += head_name;
  for (const char* head :
       {"count", "p50", "p99", "max", "on CPU", "blocked", "waiting", "ready", "unknown"}) {
    out += cell(head);
  }
  out += "\n";
  for (std::size_t i = 0; i < groups.size() && i < limit; ++i) {
    append_row(out, trace, groups[i]);
  }
  if (groups.size() > limit) {
    out += "and " + counted(groups.size() - limit, "name") + " with less time (--limit)\n";
  }
  return out;
}

std::string span_json(const Trace& trace, const std::vector<SpanGroup>& groups) {
  std::string out = "{\"spans\": [";
  bool is_first = true;
  for (const SpanGroup& group : groups) {
    out += is_first ? "\n{\"name\": " : ",\n{\"name\": ";
    is_first = false;
    append_json_string(out, trace.names.text(group.name));
    const bool has_lengths = group.lengths.count() != 0;
    const std::pair<const char*, std::uint64_t> numbers[] = {
        {"count", group.lengths.count()},
        {"open", group.open},
        {"p50_ns", has_lengths ? group.lengths.quantile(0.5) : kUnknownNs},
        {"p99_ns", has_lengths ? group.lengths.quantile(0.99) : kUnknownNs},
        {"max_ns", has_lengths ? group.lengths.max() : kUnknownNs},
        {"total_ns", group.time.sum_ns()},
        {"on_cpu_ns", group.time.on_cpu_ns},
        {"blocked_ns", group.time.blocked_ns},
        {"async_wait_ns", group.time.async_wait_ns},
        {"scheduler_delay_ns", group.time.scheduler_delay_ns},
        {"unknown_ns", group.time.unknown_ns()}};
    for (const auto& [key, value] : numbers) {
      out += std::string(", \"") + key + "\": ";
      out += value == kUnknownNs ? "null" : std::to_string(value);
    }
    out += ", \"unknown\": {";
    bool is_first_reason = true;
    for (std::size_t i = 0; i < kUnknownTimes; ++i) {
      if (group.time.unknown_by[i] == 0) {
        continue;
      }
      out += is_first_reason ? "" : ", ";
      is_first_reason = false;
      append_json_string(out, describe(static_cast<UnknownTime>(i)));
      out += ": " + std::to_string(group.time.unknown_by[i]);
    }
    out += "}}";
  }
  out += "\n], \"shed\": [";
  is_first = true;
  for (const std::string& line : ShedWindows(trace).lines()) {
    out += is_first ? "" : ", ";
    is_first = false;
    append_json_string(out, line);
  }
  return out + "]}\n";
}

}  // namespace dial9::analysis
