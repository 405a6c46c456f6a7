// Runs the finders and ranks what they bring.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/findings.h"

#include <algorithm>

#include "analysis/finders.h"
#include "analysis/human.h"
#include "base/stable_sort.h"

namespace dial9::analysis {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kCritical:
      return "critical";
  }
  return "";
}

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::kLongPoll:
      return "long-poll";
    case FindingKind::kReadyDelay:
      return "ready-delay";
    case FindingKind::kKernelWait:
      return "kernel-wait";
    case FindingKind::kQueueGrowth:
      return "queue-growth";
    case FindingKind::kWorkerImbalance:
      return "worker-imbalance";
    case FindingKind::kTaskLeak:
      return "task-leak";
    case FindingKind::kBlockingCall:
      return "blocking-call";
    case FindingKind::kStrandWait:
      return "strand-wait";
    case FindingKind::kMigration:
      return "migration";
    case FindingKind::kAcceptQueue:
      return "accept-queue";
    case FindingKind::kPlatformStall:
      return "platform-stall";
    case FindingKind::kLoss:
      return "loss";
  }
  return "";
}

std::vector<Finding> diagnose(const Trace& trace, const FindingOptions& options) {
  const PlatformStallIndex platform(trace);
  const FindContext context{trace, options, platform};
  Findings out;
  find_long_polls(context, out);
  find_ready_delays(context, out);
  find_kernel_waits(context, out);
  find_queue_growth(context, out);
  find_worker_imbalance(context, out);
  find_task_leaks(context, out);
  find_blocking_calls(context, out);
  find_strand_waits(context, out);
  find_migrations(context, out);
  find_accept_queues(context, out);
  find_platform_stalls(context, out);
  find_loss(context, out);
  find_shed(context, out);
  dial9::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.score > b.score;
  });
  return out;
}

KernelWaitBudget::KernelWaitBudget(const Trace& trace) {
  std::unordered_map<std::uint64_t, std::uint64_t> last_ns;  // by worker and thread
  for (std::size_t i = 0; i < trace.sched.size(); ++i) {
    const SchedSample& sample = trace.sched[i];
    // A first sample has no start of its own; it covers the recorder's period, and what it counts.
    constexpr std::uint64_t kPeriodNs = 100'000'000;
    const std::uint64_t counted = std::max(kPeriodNs, sample.run_ns + sample.wait_ns);
    std::uint64_t from_ns = sample.at_ns > counted ? sample.at_ns - counted : 0;
    const std::uint64_t thread = std::uint64_t{sample.worker} << 32 | sample.tid;
    const auto [before, is_first] = last_ns.try_emplace(thread, sample.at_ns);
    if (!is_first) {
      from_ns = before->second;
      before->second = sample.at_ns;
    }
    workers_[sample.worker].push_back({from_ns, sample.at_ns, sample.wait_ns, from_ns});
  }
  for (auto& [worker, windows] : workers_) {
    for (std::size_t i = windows.size(); i-- > 1;) {
      windows[i - 1].least_from_ns = std::min(windows[i - 1].from_ns, windows[i].least_from_ns);
    }
  }
}

const std::vector<KernelWaitBudget::Window>* KernelWaitBudget::find(std::uint32_t worker) const {
  const auto entry = workers_.find(worker);
  return entry == workers_.end() ? nullptr : &entry->second;
}

bool KernelWaitBudget::is_known(std::uint32_t worker) const { return find(worker) != nullptr; }

// Windows are sorted by their end.
std::pair<std::size_t, std::size_t> KernelWaitBudget::overlapping(
    const std::vector<Window>& windows, std::uint64_t from_ns, std::uint64_t to_ns) {
  const auto first =
      std::lower_bound(windows.begin(), windows.end(), from_ns,
                       [](const Window& window, std::uint64_t at) { return window.to_ns <= at; });
  auto last = first;
  while (last != windows.end() && last->least_from_ns < to_ns) {
    ++last;
  }
  return {static_cast<std::size_t>(first - windows.begin()),
          static_cast<std::size_t>(last - windows.begin())};
}

std::uint64_t KernelWaitBudget::take(std::uint32_t worker, std::uint64_t from_ns,
                                     std::uint64_t to_ns, std::uint64_t wanted_ns) {
  const auto entry = workers_.find(worker);
  if (entry == workers_.end()) {
    return 0;
  }
  std::uint64_t taken = 0;
  const auto [first, last] = overlapping(entry->second, from_ns, to_ns);
  for (std::size_t i = first; i < last && taken < wanted_ns; ++i) {
    Window& window = entry->second[i];
    if (window.from_ns < to_ns) {
      const std::uint64_t part = std::min(window.left_ns, wanted_ns - taken);
      window.left_ns -= part;
      taken += part;
    }
  }
  return taken;
}

std::uint64_t KernelWaitBudget::most(std::uint32_t worker, std::uint64_t from_ns,
                                     std::uint64_t to_ns) const {
  const std::vector<Window>* windows = find(worker);
  if (windows == nullptr) {
    return 0;
  }
  std::uint64_t sum = 0;
  const auto [first, last] = overlapping(*windows, from_ns, to_ns);
  for (std::size_t i = first; i < last; ++i) {
    sum += (*windows)[i].from_ns < to_ns ? (*windows)[i].left_ns : 0;
  }
  return sum;
}

std::string place_text(const Trace& trace, NameId place) {
  const std::string_view text = trace.names.text(place);
  return text.empty() ? "(place not recorded)" : std::string(text);
}

std::string worker_text(const Trace& trace, std::uint32_t lane) {
  if (lane == kNoIndex) {
    return "an unknown worker";
  }
  const Lane& at = trace.lanes[lane];
  std::string text = "worker " + std::to_string(at.worker);
  if (at.worker == kUnknownWorker) {
    text = "an unknown worker";
  } else if (at.worker == kBlockingWorker) {
    text = "a blocking pool's thread";
  }
  if (at.runtime != kNoName) {
    text += " (" + std::string(trace.names.text(at.runtime)) + ")";
  }
  return text;
}

std::string task_text(const Trace& trace, std::uint32_t task) {
  return task == kNoIndex ? "an unknown task" : "task " + std::to_string(trace.tasks.id[task]);
}

std::string spread_text(const Distribution& durations) {
  return "p50 " + human_duration(durations.quantile(0.5)) + ", p90 " +
         human_duration(durations.quantile(0.9)) + ", p99 " +
         human_duration(durations.quantile(0.99)) + ", max " + human_duration(durations.max());
}

void point_at_poll(const Trace& trace, std::uint32_t poll, Finding& finding) {
  finding.poll = poll;
  finding.lane = trace.polls.lane[poll];
  finding.task = trace.polls.task[poll];
  finding.at_ns = trace.polls.start_ns[poll];
  finding.end_ns = trace.polls.end_ns[poll];
}

}  // namespace dial9::analysis
