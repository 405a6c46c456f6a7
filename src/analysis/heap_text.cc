// Heap reports as text and as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analysis/counts.h"
#include "analysis/flame.h"
#include "analysis/heap_flame.h"
#include "analysis/heap_report.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kCellWidth = 12;

std::string cell(std::string_view text) {
  return std::string(text.size() < kCellWidth ? kCellWidth - text.size() : 1, ' ') +
         std::string(text);
}

std::string bytes_text(double bytes) {
  return bytes < 0 ? "-" + human_bytes(count_of(0.5 - bytes)) : human_bytes(count_of(bytes + 0.5));
}

std::string count_text(double count) { return human_count(count_of(count + 0.5)); }

// "± 1.2 %"; nothing where every allocation was a sample.
std::string error_text(double error, double estimate) {
  if (error <= 0 || estimate <= 0) {
    return "";
  }
  std::array<char, 32> text{};
  const auto tenths = count_of(error / estimate * 1000 + 0.5);
  std::snprintf(text.data(), text.size(), " ± %llu.%llu %%",
                static_cast<unsigned long long>(tenths / 10),
                static_cast<unsigned long long>(tenths % 10));
  return text.data();
}

double order_value(const HeapGroup& group, HeapOrder order) {
  switch (order) {
    case HeapOrder::kLive:
      return group.live.bytes;
    case HeapOrder::kGrowth:
      return group.growth_bytes();
    case HeapOrder::kAllocated:
      break;
  }
  return group.allocated.bytes;
}

const char* noun(HeapBy by) {
  switch (by) {
    case HeapBy::kSite:
      return "site";
    case HeapBy::kTask:
      return "task";
    case HeapBy::kSpan:
      return "span";
    case HeapBy::kLabel:
      return "label";
    case HeapBy::kThread:
      break;
  }
  return "thread";
}

std::string id_text(std::uint64_t id, const char* what) {
  if (id == kNoHeapId) {
    return std::string("(") + what + " not recorded)";
  }
  return id == 0 ? std::string("(no ") + what + ")" : std::to_string(id);
}

std::string group_name(const Trace& trace, HeapBy by, const HeapGroup& group) {
  if (by == HeapBy::kTask) {
    std::string text = id_text(group.key, "task");
    const auto task = trace.task_by_id.find(group.key);
    if (group.key != 0 && task != trace.task_by_id.end()) {
      const NameId place = trace.tasks.spawn_loc[task->second];
      text += place == kNoName ? "" : " " + std::string(trace.names.text(place));
    }
    return text;
  }
  if (by == HeapBy::kSpan) {
    std::string text = id_text(group.key, "span");
    for (std::uint32_t i = 0; group.key != 0 && i < trace.spans.size(); ++i) {
      if (trace.spans.id[i] == group.key) {
        text += " " + std::string(trace.names.text(trace.spans.name[i]));
        break;
      }
    }
    return text;
  }
  if (by == HeapBy::kLabel) {
    const auto name = static_cast<NameId>(group.key >> 32);
    if (name == kNoName) {
      return "(no label)";
    }
    return std::string(trace.names.text(name)) + "=" +
           std::string(trace.names.text(static_cast<NameId>(group.key)));
  }
  return "thread " + std::to_string(group.key);
}

std::string name_at(const Trace& trace, const HeapReport& report, std::size_t i,
                    const std::vector<std::string>& site_names) {
  return report.by == HeapBy::kSite && i < site_names.size()
             ? site_names[i]
             : group_name(trace, report.by, report.groups[i]);
}

void append_notes(std::string& out, const HeapReport& report) {
  for (const std::string& note : report.notes) {
    out += "note: " + to_printable(note) + "\n";
  }
}

std::string figure_text(const HeapFigure& figure) {
  return bytes_text(figure.bytes) + error_text(figure.bytes_error(), figure.bytes) + " in " +
         count_text(figure.count) + error_text(figure.count_error(), figure.count) +
         " allocations (" + counted(figure.samples, "sample") + ")";
}

void append_summary(std::string& out, const HeapReport& report, HeapOrder order) {
  const HeapGroup& total = report.total;
  out += "allocated: " + figure_text(total.allocated) + "\n";
  if (!report.is_live_known) {
    out += "live: unknown, frees weren't recorded (tracks_live, DIAL9_MEMORY_TRACK_LIVESET)\n";
  } else {
    out += "live at the end: " + figure_text(total.live) +
           (report.is_live_uncertain ? ", uncertain\n" : "\n");
    if (order == HeapOrder::kGrowth) {
      out += "growth: " + bytes_text(total.growth_bytes()) + " ± " +
             bytes_text(std::sqrt(total.growth_variance)) + "\n";
    }
  }
}

// Bytes, by how their stacks were found.
UnwoundSums unwound_of(const HeapGroup& group, HeapFigure HeapPart::*figure) {
  UnwoundSums sums;
  for (const HeapPart& part : group.parts) {
    sums.add(part.unwound, part.is_truncated, count_of((part.*figure).bytes + 0.5));
  }
  return sums;
}

// How the stacks of what the order is about were found.
void append_unwound(std::string& out, const HeapReport& report, HeapOrder order) {
  const bool is_live = order != HeapOrder::kAllocated;
  if (!report.is_allocated_known || (is_live && !report.is_live_known)) {
    return;
  }
  UnwoundSums sums;
  for (const HeapGroup& group : report.groups) {
    add_heap_unwound(group, order, sums);
  }
  const std::uint64_t whole = sums.total();
  if (const std::string text = unwound_text(sums, whole); !text.empty()) {
    out += text + "\n";
  }
  if (sums.truncated != 0) {
    out += percent_of(sums.truncated, whole) + " in stacks whose outer frames are missing\n";
  }
  for (const std::string& cure : unwound_cures(sums, whole)) {
    out += "note: " + cure + "\n";
  }
}

// Behind a site, of the bytes that the order is about: "  [outer frames missing: 0.10 %]".
std::string truncated_text(const HeapGroup& group, HeapOrder order) {
  UnwoundSums sums;
  add_heap_unwound(group, order, sums);
  return sums.truncated == 0 ? ""
                             : "  [outer frames missing: " +
                                   percent_of(sums.truncated, sums.total()) + "]";
}

void append_row(std::string& out, const HeapReport& report, const HeapGroup& group, HeapOrder order,
                const std::string& name) {
  const bool is_known = report.is_live_known;
  out += cell(bytes_text(group.allocated.bytes)) + cell(count_text(group.allocated.count));
  out += cell(is_known ? bytes_text(group.live.bytes) : "-") +
         cell(is_known ? count_text(group.live.count) : "-");
  if (order == HeapOrder::kGrowth) {
    out +=
        cell(bytes_text(group.growth_bytes())) + cell(bytes_text(std::sqrt(group.growth_variance)));
  } else {
    const auto age = group.median_age_ns();
    out += cell(age && is_known ? human_duration(*age) : "-");
  }
  out += "  " + to_printable(name);
  if (report.by == HeapBy::kSite) {
    out += truncated_text(group, order);
  }
  if (order == HeapOrder::kGrowth && group.is_leak_candidate()) {
    out += "  <- leak candidate";
  }
  out += "\n";
}

void append_figure(std::string& out, const char* name, const HeapFigure& figure,
                   const HeapFigure& truncated, bool is_known) {
  out += std::string(", \"") + name + "\": ";
  if (!is_known) {
    out += "null";
    return;
  }
  out += "{\"bytes\": ";
  append_json_number(out, figure.bytes);
  out += ", \"count\": ";
  append_json_number(out, figure.count);
  out += ", \"bytes_error\": ";
  append_json_number(out, figure.bytes_error());
  out += ", \"count_error\": ";
  append_json_number(out, figure.count_error());
  out += ", \"samples\": ";
  append_json_number(out, figure.samples);
  out += ", \"truncated_bytes\": ";
  append_json_number(out, truncated.bytes);
  out += ", \"truncated_samples\": ";
  append_json_number(out, truncated.samples);
  out += "}";
}

void append_group(std::string& out, const HeapReport& report, const HeapGroup& group) {
  append_figure(out, "allocated", group.allocated, group.truncated(&HeapPart::allocated),
                report.is_allocated_known);
  append_figure(out, "live", group.live, group.truncated(&HeapPart::live), report.is_live_known);
  append_figure(out, "live_before", group.live_before, group.truncated(&HeapPart::live_before),
                report.is_live_known);
  out += ", \"growth_bytes\": ";
  if (report.is_live_known) {
    append_json_number(out, group.growth_bytes());
  } else {
    out += "null";
  }
  out += ", \"growth_error\": ";
  if (report.is_live_known) {
    append_json_number(out, std::sqrt(group.growth_variance));
  } else {
    out += "null";
  }
  out += ", \"leak_candidate\": ";
  out += !report.is_live_known ? "null" : group.is_leak_candidate() ? "true" : "false";
  out += ", \"median_age_ns\": ";
  if (const auto age = group.median_age_ns()) {
    append_json_number(out, *age);
  } else {
    out += "null";
  }
  out += ", \"untracked\": ";
  append_json_number(out, group.untracked);
}

}  // namespace

std::string heap_text(const Trace& trace, HeapReport report, HeapOrder order, std::size_t limit,
                      const std::vector<std::string>& site_names) {
  std::string out;
  if (report.is_allocated_known) {
    append_summary(out, report, order);
  }
  append_unwound(out, report, order);
  append_notes(out, report);
  if (!heap_lack(report, order).empty()) {
    return out;  // a table of what isn't known would be one of zeros
  }
  std::vector<std::size_t> rows(report.groups.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  dial9::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return order_value(report.groups[a], order) > order_value(report.groups[b], order);
  });
  out += "\n" + cell("allocated") + cell("count") + cell("live") + cell("count");
  out += order == HeapOrder::kGrowth ? cell("growth") + cell("error") : cell("median age");
  out += std::string("  ") + noun(report.by) + "\n";
  for (std::size_t i = 0; i < rows.size() && i < limit; ++i) {
    append_row(out, report, report.groups[rows[i]], order,
               name_at(trace, report, rows[i], site_names));
  }
  if (rows.size() > limit) {
    out += "and " + counted(rows.size() - limit, noun(report.by)) + " with less (--limit)\n";
  }
  return out;
}

std::string heap_json(const Trace& trace, const HeapReport& report,
                      const std::vector<std::string>& site_names) {
  std::string out = "{\"by\": ";
  append_json_string(out, noun(report.by));
  out += ", \"live_known\": ";
  out += report.is_live_known ? "true" : "false";
  out += ", \"live_uncertain\": ";
  out += report.is_live_uncertain ? "true" : "false";
  out += ", \"notes\": [";
  for (std::size_t i = 0; i < report.notes.size(); ++i) {
    out += i == 0 ? "" : ", ";
    append_json_string(out, report.notes[i]);
  }
  out += "], \"unwound\": {\"allocated\": ";
  const UnwoundSums allocated = unwound_of(report.total, &HeapPart::allocated);
  out += report.is_allocated_known ? unwound_json(allocated) : "null";
  out += ", \"live\": ";
  const UnwoundSums live = unwound_of(report.total, &HeapPart::live);
  out += report.is_live_known ? unwound_json(live) : "null";
  out += "}, \"total\": {\"name\": \"all\"";
  append_group(out, report, report.total);
  out += "}, \"groups\": [";
  for (std::size_t i = 0; i < report.groups.size(); ++i) {
    out += i == 0 ? "\n{\"name\": " : ",\n{\"name\": ";
    append_json_string(out, name_at(trace, report, i, site_names));
    append_group(out, report, report.groups[i]);
    out += "}";
  }
  out += "]}\n";
  return out;
}

}  // namespace dial9::analysis
