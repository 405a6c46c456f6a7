// The table of faults, its parser and its print-out.
// Strongest property: every fault that the service knows is described here, once.
// SPDX-License-Identifier: Apache-2.0
#include "fault_names.h"

#include <array>

namespace checkout {
namespace {

constexpr std::array<FaultInfo, kFaultCount> kFaults{{
    {Fault::kLongHandler, "long-handler", "long-poll",
     "Every 16th request computes for 20 ms of CPU time without awaiting, as a regular "
     "expression, a big JSON document or a password hash would. All other tasks of that worker "
     "wait behind it. A diagnosis should show polls of about 20 ms, far above the program's own "
     "distribution, with the task they belong to."},
    {Fault::kBlockingRead, "blocking-read", "blocking-call",
     "Every 8th request reads a pipe with a plain blocking read(2) inside its handler, and the "
     "other end is fed 15 ms late, as a file on a slow network mount would be. The worker burns "
     "no CPU but serves nobody. A diagnosis should show a blocking call inside a poll, its name "
     "(read) and its length."},
    {Fault::kHotMutex, "hot-mutex", "blocking-call",
     "Every request takes one std::mutex that all workers share and computes for 4 ms with it "
     "held, as a global cache or a price table would make them. A diagnosis should show workers "
     "that wait for one lock inside their polls, the lock's address, and the thread that held it."},
    {Fault::kConnectStorm, "connect-storm", "long-poll",
     "At start eight tasks open 1200 connections to the store each, in one go, as a restarted "
     "client that fills its pools would. Each step over a power of two makes the kernel grow the "
     "table of descriptors, which in a process of many threads waits for an RCU grace period, "
     "inside socket(2). A diagnosis should show very long polls of the pools' tasks right after "
     "the start, and delayed tasks behind them."},
    {Fault::kOneStrand, "one-strand", "strand-wait",
     "Every request passes through one strand and computes there for 5 ms, as a "
     "\"single-threaded\" component inside a worker pool does. More workers don't help. A "
     "diagnosis should show tasks that wait for one strand while workers are idle."},
    {Fault::kOversubscribed, "oversubscribed", "kernel-wait",
     "The process runs six more busy threads a core than the machine has, as a library with its "
     "own thread pool or a too small CPU limit does. Workers that wake up wait in the kernel's "
     "run queue. A diagnosis should show time that workers were runnable but not running."},
    {Fault::kHopping, "hopping", "migration",
     "Every request starts a task that moves to another single-threaded context at every step, 30 "
     "times, as code does that guards each object by an executor of its own. Caches and time are "
     "lost on the way. A diagnosis should show tasks that change the worker at nearly every poll."},
    {Fault::kGrowingQueue, "growing-queue", "queue-growth",
     "From the first request on, a background producer posts 2 ms jobs faster than the workers "
     "can run them, without a limit, as a warm-up or a fan-out without back-pressure does. A "
     "diagnosis should show a queue depth that only rises, and ready-to-run delays that grow with "
     "it."},
    {Fault::kTaskLeak, "task-leak", "task-leak",
     "Every request starts a task that waits for an answer that never comes, as a missing timeout "
     "or a lost notification does. Nothing is slow yet; memory grows for ever. A diagnosis should "
     "show tasks of one place that are spawned and never end."},
}};

const FaultInfo* find(std::string_view name) {
  for (const FaultInfo& info : kFaults) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::string names() {
  std::string all;
  for (const FaultInfo& info : kFaults) {
    if (!all.empty()) all += ", ";
    all += info.name;
  }
  return all;
}

void append_wrapped(std::string& out, std::string_view text, std::size_t width) {
  constexpr std::string_view kIndent = "    ";
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (column != 0 && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out += kIndent;
      column = kIndent.size();
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

}  // namespace

std::span<const FaultInfo> all_faults() { return kFaults; }

std::expected<FaultSet, std::string> parse_faults(std::string_view list) {
  FaultSet set;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    const FaultInfo* info = find(name);
    if (info == nullptr) {
      return std::unexpected("no fault is named '" + std::string(name) +
                             "'; there are: " + names());
    }
    set.add(info->fault);
  }
  return set;
}

std::string describe_faults(std::size_t width) {
  std::string out;
  for (const FaultInfo& info : kFaults) {
    if (!out.empty()) out += '\n';
    out += info.name;
    out += "  (finding: ";
    out += info.finding;
    out += ")\n";
    append_wrapped(out, info.description, width);
  }
  return out;
}

}  // namespace checkout
