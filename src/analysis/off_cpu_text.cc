// The off-CPU report's tables, as text and as JSON. See off_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>
#include <utility>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/off_cpu.h"
#include "analysis/socket_waits.h"

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

std::string name_or_id(const Trace& trace, std::uint32_t tid, NameId name) {
  return std::to_string(tid) + (name == kNoName ? "" : " " + to_printable(trace.names.text(name)));
}

std::string thread_rows(const Trace& trace, const OffCpuReport& report, std::uint64_t limit) {
  std::string out = cells({"elapsed", "running", "runnable", "blocked", "unseen"}) + "thread\n";
  for (std::size_t i = 0; i < report.threads.size() && i < limit; ++i) {
    const OffCpuThread& thread = report.threads[i];
    out += cells({human_duration(thread.elapsed_ns), human_duration(thread.running_ns),
                  human_duration(thread.runnable_ns), human_duration(thread.blocked_ns),
                  human_duration(thread.unseen_ns)}) +
           name_or_id(trace, thread.tid, thread.name) + "\n";
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

// One line a slow wait for a connection: what the kernel said of it last.
std::string socket_rows(const Trace& trace, const OffCpuReport& report, std::uint64_t limit) {
  std::string out = "connections that slow waits waited for, at the last look:\n";
  for (std::size_t i = 0; i < report.sockets.size() && i < limit; ++i) {
    const SocketWait& wait = report.sockets[i];
    out += right_aligned(human_duration(wait.waited_ns), kCellWidth) + "  in " +
           (wait.call == kNoName ? "a call" : to_printable(trace.names.text(wait.call))) +
           ", thread " + name_or_id(trace, wait.tid, wait.thread_name) + ": " + socket_text(wait) +
           "\n";
  }
  return out + rest_line(report.sockets.size(), limit, "wait");
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

// As text, since they have 64 bits; null: none, or not known.
void append_id(std::string& out, const char* key, std::uint64_t id) {
  const bool is_known = id != 0 && id != kUnknownId;
  out +=
      std::string(", \"") + key + "\": " + (is_known ? "\"" + std::to_string(id) + "\"" : "null");
}

std::string socket_json(const Trace& trace, const OffCpuReport& report) {
  std::string out = "[";
  for (const SocketWait& wait : report.sockets) {
    out += out.size() == 1 ? "\n{" : ",\n{";
    out += "\"tid\": " + std::to_string(wait.tid) + ", \"thread_name\": ";
    append_name(out, trace.names.text(wait.thread_name));
    append_id(out, "task_id", wait.task_id);
    append_id(out, "span_id", wait.span_id);
    out += ", \"call\": ";
    append_name(out, trace.names.text(wait.call));
    append_numbers(out, {{"at_ns", wait.at_ns},
                         {"waited_ns", wait.waited_ns},
                         {"tcp_state", wait.tcp_state},
                         {"retransmits", wait.retransmits},
                         {"total_retransmits", wait.total_retransmits},
                         {"unacked_segments", wait.unacked_segments},
                         {"lost_segments", wait.lost_segments}});
    const std::pair<const char*, std::uint64_t> known[] = {
        {"rtt_ns", wait.rtt_ns},
        {"rtt_var_ns", wait.rtt_var_ns},
        {"since_received_ns", wait.since_received_ns},
        {"since_sent_ns", wait.since_sent_ns},
        {"unread_bytes", wait.unread_bytes},
        {"unsent_bytes", wait.unsent_bytes}};
    for (const auto& [key, value] : known) {
      out += std::string(", \"") + key +
             "\": " + (value == kUnknownNs ? "null" : std::to_string(value));
    }
    out += ", \"text\": ";
    append_json_string(out, socket_text(wait));
    out += "}";
  }
  return out + "\n]";
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
                         {"unseen_ns", thread.unseen_ns},
                         {"exact_ns", thread.exact_ns},
                         {"throttled_most_ns", thread.throttled_ns}});
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
  if (!report.sockets.empty()) {
    out += socket_rows(trace, report, limit) + "\n";
  }
  return out;
}

std::string off_cpu_json(const Trace& trace, const OffCpuReport& report, OffCpuBy by) {
  std::string out = "\"by\": \"" + std::string(off_cpu_by_name(by)) + "\"";
  const auto sum = [&](const char* name, std::uint64_t ns) {
    out += std::string(", \"") + name +
           "\": " + (report.heading.is_unknown ? "null" : std::to_string(ns));
  };
  sum("proven_ns", report.proven_ns);
  sum("estimated_ns", report.estimated_ns);
  sum("exact_ns", report.exact_ns);
  sum("parked_ns", report.parked_ns);
  sum("runnable_ns", report.runnable_ns);
  sum("throttled_ns", report.throttled_ns);
  out += ", \"unseen_ns\": " + (report.has_threads ? std::to_string(report.unseen_ns) : "null");
  out += ", \"excess_ns\": " + (report.has_threads ? std::to_string(report.excess_ns) : "null");
  out += ", \"room_ns\": " + (report.room_ns ? std::to_string(*report.room_ns) : "null");
  append_numbers(out, {{"cut_ns", report.cut_ns}});
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
  return out + "\n],\n\"sockets\": " + socket_json(trace, report);
}

}  // namespace dial9::analysis
