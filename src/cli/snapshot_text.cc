// See snapshot_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/report.h"
#include "analysis/segment_gaps.h"
#include "base/stable_sort.h"

namespace dial9::cli {
namespace {

using analysis::append_json_string;
using analysis::count_of;
using analysis::counted;
using analysis::human_count;
using analysis::human_duration;
using analysis::kUnknownNs;
using analysis::TaskWait;
using analysis::WorkerDoing;
using analysis::WorkerNow;
using internal::KernelThread;

constexpr std::size_t kWorkerRows = 32;
constexpr std::size_t kThreadRows = 12;

std::uint64_t age(const ProcessView& view, std::uint64_t since_ns) {
  if (since_ns == kUnknownNs) return kUnknownNs;
  return view.now.now_ns > since_ns ? view.now.now_ns - since_ns : 0;
}

std::string worker_name(const ProcessView& view, const WorkerNow& worker) {
  const analysis::Lane& lane = view.trace.lanes[worker.lane];
  std::string name = lane.worker == analysis::kUnknownWorker ? "a thread that is no worker"
                     : lane.worker == analysis::kBlockingWorker
                         ? "blocking pool"
                         : "worker " + std::to_string(lane.worker);
  const std::string runtime = printable(view.trace.names.text(lane.runtime));
  return name + (runtime.empty() ? "" : " of " + runtime);
}

std::string doing_text(const ProcessView& view, const WorkerNow& worker) {
  if (worker.since_ns == kUnknownNs) return "unknown";
  std::string out;
  if (worker.doing == WorkerDoing::kPolling) {
    const std::uint32_t task = view.trace.polls.task[worker.poll];
    const auto place = view.trace.names.text(view.trace.polls.spawn_loc[worker.poll]);
    out = "IN A POLL for " + human_duration(age(view, worker.since_ns)) + ": " +
          task_name(view, task);
    const std::string at = printable(place);
    if (!at.empty() && (task == analysis::kNoIndex || at != place_of_task(view, task))) {
      out += ", " + at;
    }
  } else {
    out = (worker.doing == WorkerDoing::kParked ? "parked for " : "between polls for ") +
          human_duration(age(view, worker.since_ns));
  }
  return out +
         (worker.is_uncertain ? " (unless what isn't recorded since then says otherwise)" : "");
}

// " (arena_full 12, damaged unknown)".
std::string causes_text(const ProcessView& view) {
  std::map<std::string, std::pair<std::uint64_t, bool>> causes;  // counted; more than that
  for (const analysis::LossRecord& loss : view.trace.loss) {
    const std::string name = printable(view.trace.names.text(loss.cause));
    if (name == analysis::kRecordingOff) continue;
    auto& [count, is_unknown] = causes[name];
    count = analysis::sum_of(count, loss.count);
    is_unknown |= loss.count == 0;
  }
  std::string out;
  for (const auto& [name, cause] : causes) {
    out += (out.empty() ? " (" : ", ") + name + " " +
           (cause.second ? "unknown" : human_count(cause.first));
  }
  return out.empty() ? out : out + ")";
}

std::string head_text(const ProcessView& view, const std::string& trace_path) {
  const internal::TargetLook& look = view.look;
  std::string out = "process   " + std::to_string(look.kernel.pid) + " " +
                    printable(look.kernel.name) + ", " +
                    counted(look.kernel.threads.size(), "thread") + ", at " +
                    analysis::iso_time(look.realtime_ns) + "\n";
  out += "recorder  run " + printable(look.boot_id) +
         (look.run_directory.empty() ? ", segments in its memory"
                                     : ", segments in " + printable(look.run_directory)) +
         "; " + human_count(look.chunks_in_use) + " of " + human_count(look.chunks_total) +
         " chunks in use\n";
  out += "history   ";
  if (view.complete_since_ns >= view.now.now_ns) {
    out += "not whole: what is missing could be recent, so no wait is claimed\n";
  } else if (view.complete_since_ns <= look.recorder_started_ns) {
    out += "whole since the recorder's start, " +
           human_duration(age(view, look.recorder_started_ns)) + " ago\n";
  } else {
    out += "whole for the last " + human_duration(age(view, view.complete_since_ns)) + "\n";
  }
  out += "lost      " +
         analysis::lost_text(view.trace.lost_events(), view.trace.has_unknown_loss()) +
         causes_text(view) + "\n";
  for (const std::string& note : look.notes) out += "note      " + printable(note) + "\n";
  if (!trace_path.empty()) out += "trace     " + trace_path + "\n";
  return out;
}

std::string workers_text(const ProcessView& view) {
  std::string out = "\nworkers\n";
  std::size_t row = 0;
  for (const WorkerNow& worker : workers_by_urgency(view)) {
    if (row++ == kWorkerRows) {
      out += "  ... and " + human_count(view.now.workers.size() - kWorkerRows) + " more\n";
      break;
    }
    const KernelThread* thread = thread_of(view, worker);
    out += "  " + worker_name(view, worker) + ": " + doing_text(view, worker) + "\n";
    out += thread == nullptr ? "      thread not known\n"
                             : "      thread " + std::to_string(thread->tid) + " " +
                                   printable(thread->name) + ", " + thread_text(*thread) + "\n";
  }
  return view.now.workers.empty() ? out + "  none in the records\n" : out;
}

std::string waits_text(const ProcessView& view, const char* title,
                       const std::vector<TaskWait>& waits, std::uint64_t count) {
  const bool is_least = may_miss_waits(view);
  std::string out =
      std::string("\n") + title + ": " +
      (is_least && count == 0 ? "none known"
                              : (is_least ? "at least " : "") + counted(count, "task")) +
      "\n";
  for (const TaskWait& wait : waits) {
    out += "  " + human_duration(age(view, wait.since_ns)) + "  " + task_name(view, wait.task) +
           (wait.is_inferred ? " (never ran since its spawn)" : "") + "\n";
  }
  return out;
}

// Threads that are no workers, the same ones together.
std::string other_threads_text(const ProcessView& view) {
  std::map<std::string, std::uint64_t> groups;
  for (const KernelThread& thread : view.look.kernel.threads) {
    const bool is_worker =
        std::any_of(view.now.workers.begin(), view.now.workers.end(),
                    [&](const WorkerNow& worker) { return thread_of(view, worker) == &thread; });
    if (!is_worker) ++groups[printable(thread.name) + ": " + thread_text(thread)];
  }
  if (groups.empty()) return {};
  std::string out = "\nother threads\n";
  std::size_t row = 0;
  for (const auto& [text, count] : groups) {
    if (row++ == kThreadRows) {
      out += "  ... and " + human_count(groups.size() - kThreadRows) + " more kinds\n";
      break;
    }
    out += "  " + (count == 1 ? "" : human_count(count) + " x ") + text + "\n";
  }
  return out;
}

// --- JSON

class Json {
 public:
  Json& key(const char* name) {
    out_ += is_first_ ? "" : ", ";
    is_first_ = false;
    out_ += std::string("\"") + name + "\": ";
    return *this;
  }
  void text(std::string_view value) { append_json_string(out_, value); }
  void number(std::uint64_t value) { out_ += std::to_string(value); }
  void number_or_null(std::uint64_t value, bool is_known) {
    out_ += is_known ? std::to_string(value) : "null";
  }
  void truth(bool value) { out_ += value ? "true" : "false"; }
  void open(char bracket) {
    out_ += bracket;
    is_first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    is_first_ = false;
  }
  void item() {  // before each element of an array
    out_ += is_first_ ? "" : ", ";
    is_first_ = false;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  bool is_first_ = true;
};

void task_json(Json& out, const ProcessView& view, std::uint32_t task) {
  if (task == analysis::kNoIndex) {
    out.key("task").number_or_null(0, false);
    return;
  }
  out.key("task").text(std::to_string(view.trace.tasks.id[task]));
  out.key("place").text(place_of_task(view, task));
}

void thread_json(Json& out, const KernelThread& thread) {
  out.open('{');
  out.key("tid").number(thread.tid);
  out.key("name").text(thread.name);
  out.key("state").text(std::string(1, thread.state));
  if (thread.wchan) out.key("wchan").text(*thread.wchan);
  if (thread.syscall) out.key("syscall").text(internal::syscall_name(*thread.syscall));
  if (thread.run_ns) out.key("run_ns").number(*thread.run_ns);
  if (thread.wait_ns) out.key("wait_ns").number(*thread.wait_ns);
  out.close('}');
}

void worker_json(Json& out, const ProcessView& view, const WorkerNow& worker) {
  const analysis::Lane& lane = view.trace.lanes[worker.lane];
  const bool is_known = worker.since_ns != kUnknownNs;
  const char* doing = worker.doing == WorkerDoing::kPolling  ? "polling"
                      : worker.doing == WorkerDoing::kParked ? "parked"
                                                             : "between";
  out.open('{');
  out.key("worker").number(lane.worker);
  out.key("runtime").text(view.trace.names.text(lane.runtime));
  out.key("doing").text(is_known ? doing : "unknown");
  out.key("for_ns").number_or_null(age(view, worker.since_ns), is_known);
  out.key("is_uncertain").truth(worker.is_uncertain);
  if (worker.doing == WorkerDoing::kPolling) {
    task_json(out, view, view.trace.polls.task[worker.poll]);
    out.key("poll_place").text(view.trace.names.text(view.trace.polls.spawn_loc[worker.poll]));
  }
  out.key("window_ns").number(worker.window_ns);
  out.key("is_partial").truth(worker.is_partial);
  out.key("polls").number(worker.polls);
  out.key("busy_ns").number(worker.busy_ns);
  if (const KernelThread* thread = thread_of(view, worker)) {
    out.key("thread");
    thread_json(out, *thread);
  }
  out.close('}');
}

void waits_json(Json& out, const ProcessView& view, const std::vector<TaskWait>& waits) {
  out.open('[');
  for (const TaskWait& wait : waits) {
    out.item();
    out.open('{');
    task_json(out, view, wait.task);
    out.key("for_ns").number(age(view, wait.since_ns));
    out.key("is_inferred").truth(wait.is_inferred);
    out.close('}');
  }
  out.close(']');
}

void lists_json(Json& out, const ProcessView& view) {
  out.key("queues").open('[');
  for (const analysis::QueueNow& queue : view.now.queues) {
    out.item();
    out.open('{');
    out.key("runtime").text(view.trace.names.text(queue.runtime));
    const bool has_depth = queue.depth >= 0;
    const bool has_tasks = queue.alive_tasks >= 0;
    out.key("depth").number_or_null(has_depth ? count_of(queue.depth) : 0, has_depth);
    out.key("alive_tasks").number_or_null(has_tasks ? count_of(queue.alive_tasks) : 0, has_tasks);
    out.key("age_ns").number_or_null(age(view, queue.at_ns), queue.at_ns != kUnknownNs);
    out.close('}');
  }
  out.close(']');
  out.key("slowest_handlers").open('[');
  for (const analysis::PlaceNow& place : view.now.places) {
    out.item();
    out.open('{');
    out.key("place").text(view.trace.names.text(place.place));
    out.key("longest_ns").number(place.longest_ns);
    out.key("is_running").truth(place.is_open);
    out.key("is_uncertain").truth(place.is_uncertain);
    out.key("polls").number(place.polls);
    out.key("total_ns").number(place.total_ns);
    out.close('}');
  }
  out.close(']');
}

}  // namespace

std::vector<WorkerNow> workers_by_urgency(const ProcessView& view) {
  std::vector<WorkerNow> workers = view.now.workers;
  const auto rank = [](const WorkerNow& worker) {
    return worker.doing == WorkerDoing::kPolling ? 0 : worker.doing == WorkerDoing::kParked ? 2 : 1;
  };
  dial9::stable_sort(workers.begin(), workers.end(), [&](const WorkerNow& a, const WorkerNow& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.since_ns < b.since_ns;
  });
  return workers;
}

std::string snapshot_text(const ProcessView& view, const std::string& trace_path) {
  std::string out = head_text(view, trace_path) + workers_text(view);
  out += waits_text(view, "ready, but not run, the longest first", view.now.ready,
                    view.now.ready_count);
  out += waits_text(view, "suspended, the longest first", view.now.suspended,
                    view.now.suspended_count);
  if (view.now.uncertain_tasks != 0) {
    out += "  " + counted(view.now.uncertain_tasks, "task") +
           " can't be judged: records that would tell are missing or older\n";
  }
  out += "\nqueues\n";
  for (const analysis::QueueNow& queue : view.now.queues) {
    const auto sample = [](double value) {
      return value < 0 ? std::string("unknown") : human_count(count_of(value));
    };
    out += "  " + printable(view.trace.names.text(queue.runtime)) + ": " + sample(queue.depth) +
           " queued, " + sample(queue.alive_tasks) + " tasks alive, " +
           human_duration(age(view, queue.at_ns)) + " ago\n";
  }
  if (view.now.queues.empty()) out += "  none in the records\n";
  return out + other_threads_text(view);
}

std::string snapshot_json(const ProcessView& view, const std::string& trace_path) {
  const internal::TargetLook& look = view.look;
  Json out;
  out.open('{');
  out.key("pid").number(look.kernel.pid);
  out.key("process").text(look.kernel.name);
  out.key("at").text(analysis::iso_time(look.realtime_ns));
  out.key("boot_id").text(look.boot_id);
  out.key("run_directory").text(look.run_directory);
  out.key("trace").text(trace_path);
  const bool is_whole = view.complete_since_ns < view.now.now_ns;
  const std::uint64_t since_ns = std::max(view.complete_since_ns, look.recorder_started_ns);
  out.key("history_ns").number_or_null(age(view, since_ns), is_whole);
  out.key("lost_events").number_or_null(view.trace.lost_events(), !view.trace.has_unknown_loss());
  out.key("notes").open('[');
  for (const std::string& note : look.notes) {
    out.item();
    out.text(note);
  }
  out.close(']');
  out.key("workers").open('[');
  for (const WorkerNow& worker : view.now.workers) {
    out.item();
    worker_json(out, view, worker);
  }
  out.close(']');
  out.key("ready_tasks").number(view.now.ready_count);
  out.key("ready");
  waits_json(out, view, view.now.ready);
  out.key("suspended_tasks").number(view.now.suspended_count);
  out.key("suspended");
  waits_json(out, view, view.now.suspended);
  out.key("unjudged_tasks").number(view.now.uncertain_tasks);
  lists_json(out, view);
  out.key("threads").open('[');
  for (const KernelThread& thread : look.kernel.threads) {
    out.item();
    thread_json(out, thread);
  }
  out.close(']');
  out.close('}');
  return out.take() + "\n";
}

}  // namespace dial9::cli
