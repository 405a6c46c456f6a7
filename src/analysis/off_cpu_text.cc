// The off-CPU report's tables, as text and as JSON. See off_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>
#include <utility>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/off_cpu.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kCellWidth = 11;

std::string cells(std::initializer_list<std::string> texts) {
  std::string out;
  for (const std::string& text : texts) {
    out += right_aligned(text, kCellWidth);
  }
  return out + "  ";
}

std::string rest_line(std::size_t size, std::uint64_t limit, std::string_view noun) {
  return size > limit ? "and " + counted(size - limit, noun) + " with less (--limit)\n" : "";
}

std::string thread_rows(const Trace& trace, const OffCpuReport& report, std::uint64_t limit) {
  std::string out =
      cells({"elapsed", "running", "runnable", "blocked", "unseen"}) + "thread\n";
  for (std::size_t i = 0; i < report.threads.size() && i < limit; ++i) {
    const OffCpuThread& thread = report.threads[i];
    out += cells({human_duration(thread.elapsed_ns), human_duration(thread.running_ns),
                  human_duration(thread.runnable_ns), human_duration(thread.blocked_ns),
                  human_duration(thread.unseen_ns)}) +
           std::to_string(thread.tid) +
           (thread.name == kNoName ? "" : " " + to_printable(trace.names.text(thread.name))) + "\n";
  }
  return out + rest_line(report.threads.size(), limit, "thread");
}

std::string group_rows(const OffCpuReport& report, OffCpuBy by, std::uint64_t limit) {
  std::string out =
      cells({"time", "", "proven", "estimated", "waits"}) + std::string(off_cpu_by_name(by)) + "\n";
  for (std::size_t i = 0; i < report.groups.size() && i < limit; ++i) {
    const OffCpuGroup& group = report.groups[i];
    const std::uint64_t time_ns = sum_of(group.proven_ns, group.estimated_ns);
    out += cells({human_duration(time_ns), percent_of(time_ns, report.tree.total()),
                  human_duration(group.proven_ns), human_duration(group.estimated_ns),
                  human_count(group.waits)}) +
           (group.name.empty() ? "unknown" : to_printable(group.name)) + "\n";
  }
  return out + rest_line(report.groups.size(), limit, off_cpu_by_name(by));
}

void append_numbers(std::string& out,
                    std::initializer_list<std::pair<const char*, std::uint64_t>> numbers) {
  for (const auto& [key, value] : numbers) {
    out += std::string(", \"") + key + "\": " + std::to_string(value);
  }
}

void append_name(std::string& out, std::string_view name) {
  if (name.empty()) {
    out += "null";
  } else {
    append_json_string(out, name);
  }
}

std::string thread_json(const Trace& trace, const OffCpuReport& report) {
  if (!report.has_threads) {
    return "null";
  }
  std::string out = "[";
  for (const OffCpuThread& thread : report.threads) {
    out += out.size() == 1 ? "\n{\"tid\": " : ",\n{\"tid\": ";
    out += std::to_string(thread.tid) + ", \"name\": ";
    append_name(out, trace.names.text(thread.name));
    append_numbers(out, {{"elapsed_ns", thread.elapsed_ns},
                         {"running_ns", thread.running_ns},
                         {"runnable_ns", thread.runnable_ns},
                         {"blocked_ns", thread.blocked_ns},
                         {"unseen_ns", thread.unseen_ns}});
    out += "}";
  }
  return out + "\n]";
}

}  // namespace

std::string_view off_cpu_by_name(OffCpuBy by) {
  switch (by) {
    case OffCpuBy::kReason:
      return "reason";
    case OffCpuBy::kCall:
      return "call";
    case OffCpuBy::kThread:
      return "thread";
    case OffCpuBy::kTask:
      return "task";
    case OffCpuBy::kSpan:
      return "span";
    case OffCpuBy::kLabel:
      break;
  }
  return "label";
}

std::string off_cpu_text(const Trace& trace, const OffCpuReport& report, OffCpuBy by,
                         std::uint64_t limit) {
  std::string out;
  if (!report.threads.empty()) {
    out += thread_rows(trace, report, limit) + "\n";
  }
  if (!report.groups.empty()) {
    out += group_rows(report, by, limit) + "\n";
  }
  return out;
}

std::string off_cpu_json(const Trace& trace, const OffCpuReport& report, OffCpuBy by) {
  std::string out = "\"by\": \"" + std::string(off_cpu_by_name(by)) + "\"";
  append_numbers(out, {{"proven_ns", report.proven_ns},
                       {"estimated_ns", report.estimated_ns},
                       {"parked_ns", report.parked_ns}});
  out += ", \"unseen_ns\": " + (report.has_threads ? std::to_string(report.unseen_ns) : "null");
  out += ",\n\"threads\": " + thread_json(trace, report) + ",\n\"groups\": [";
  for (std::size_t i = 0; i < report.groups.size(); ++i) {
    const OffCpuGroup& group = report.groups[i];
    out += i == 0 ? "\n{\"name\": " : ",\n{\"name\": ";
    append_name(out, group.name);
    append_numbers(out, {{"proven_ns", group.proven_ns},
                         {"estimated_ns", group.estimated_ns},
                         {"waits", group.waits}});
    out += "}";
  }
  return out + "\n]";
}

}  // namespace dial9::analysis
