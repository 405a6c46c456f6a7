// kernel-wait: workers that were runnable and got no CPU. That the machine is busy is told as a
// fact (info); a warning needs evidence that this process itself makes it so, by what its threads
// burned. Spec: docs/spec/findings.md, "kernel-wait".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>

#include "analysis/counts.h"
#include "analysis/finders.h"
#include "analysis/human.h"

namespace dial9::analysis {
namespace {

constexpr std::uint64_t kMinTotalNs = 100'000'000;
constexpr double kInfoShare = 0.10;  // wait / (run + wait) of the workers
constexpr double kWarningShare = 0.25;
constexpr double kWallShare = 0.25;  // of one worker's time, whoever causes it
constexpr double kHeavyShare = 0.50;
constexpr double kCriticalShare = 0.60;
constexpr double kForeignShare =
    0.50;  // of the process's CPU burned by threads that are no workers
constexpr double kMinUseOfCpus = 0.35;  // of the CPUs, by this process
constexpr double kFullUseOfCpus = 0.85;

struct Totals {
  std::uint64_t run_ns = 0;
  std::uint64_t wait_ns = 0;     // what the platform explains is taken off
  std::uint64_t excused_ns = 0;  // that
  std::size_t worst = 0;         // sample with the longest wait
  Distribution parks;            // sampled waits after unparks
  std::uint32_t worst_park = kNoIndex;
};

// Of the time that a sample is about: since the recorder's last round, and at least what it counts.
std::uint64_t window_begin_ns(const Trace& trace, std::size_t i) {
  constexpr std::uint64_t kPeriodNs = 100'000'000;
  const SchedSample& sample = trace.sched[i];
  return sample.at_ns -
         std::min(sample.at_ns, std::max(kPeriodNs, sum_of(sample.run_ns, sample.wait_ns)));
}

Totals sum_up(const FindContext& context) {
  const Trace& trace = context.trace;
  Totals totals;
  for (std::size_t i = 0; i < trace.sched.size(); ++i) {
    totals.run_ns += trace.sched[i].run_ns;
    const std::uint64_t wait_ns = trace.sched[i].wait_ns;
    const std::uint64_t excused_ns =
        wait_ns == 0 ? 0
                     : std::min(wait_ns, context.platform.most_ns(window_begin_ns(trace, i),
                                                                  trace.sched[i].at_ns));
    totals.wait_ns += wait_ns - excused_ns;
    totals.excused_ns += excused_ns;
    if (trace.sched[i].wait_ns > trace.sched[totals.worst].wait_ns) {
      totals.worst = i;
    }
  }
  for (std::uint32_t i = 0; i < trace.parks.size(); ++i) {
    const std::uint64_t wait_ns = trace.parks.kernel_wait_ns[i];
    if (wait_ns == kUnknownNs) {
      continue;
    }
    totals.parks.add(wait_ns);
    if (totals.worst_park == kNoIndex || wait_ns > trace.parks.kernel_wait_ns[totals.worst_park]) {
      totals.worst_park = i;
    }
  }
  return totals;
}

// CPU time of the whole process over the span of its samples, and that span.
struct ProcessUse {
  std::uint64_t cpu_ns = 0;
  std::uint64_t wall_ns = 0;
};
std::optional<ProcessUse> process_use(const Trace& trace) {
  if (trace.resources.size() < 2) {
    return std::nullopt;
  }
  const ResourceSample& first = trace.resources[0];
  const ResourceSample& last = trace.resources[trace.resources.size() - 1];
  if (first.user_cpu_ns == kUnknownNs || first.system_cpu_ns == kUnknownNs ||
      last.user_cpu_ns == kUnknownNs || last.system_cpu_ns == kUnknownNs) {
    return std::nullopt;
  }
  const std::uint64_t before = first.user_cpu_ns + first.system_cpu_ns;
  const std::uint64_t after = last.user_cpu_ns + last.system_cpu_ns;
  if (after < before || last.at_ns <= first.at_ns) {
    return std::nullopt;
  }
  return ProcessUse{after - before, last.at_ns - first.at_ns};
}

double cpus(const Trace& trace) {
  const std::string_view text = trace.metadata_value("process.available_parallelism");
  unsigned count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

// What this process did to itself, in words; empty: nothing that can be shown.
std::string own_doing(const Trace& trace, const Totals& totals) {
  const auto use = process_use(trace);
  const double available = cpus(trace);
  if (!use || available <= 0) {
    return {};
  }
  const double cpu_ns = static_cast<double>(use->cpu_ns);
  const double use_of_cpus = cpu_ns / (static_cast<double>(use->wall_ns) * available);
  const double foreign =
      cpu_ns <= 0 ? 0 : std::max(0.0, 1 - static_cast<double>(totals.run_ns) / cpu_ns);
  if (foreign >= kForeignShare && use_of_cpus >= kMinUseOfCpus) {
    return "threads of this process that are no workers burned " + human_share(foreign) +
           " of its CPU time, and it used " + human_share(use_of_cpus) + " of the CPUs";
  }
  if (use_of_cpus >= kFullUseOfCpus) {
    return "this process alone used " + human_share(use_of_cpus) + " of the CPUs";
  }
  return {};
}

}  // namespace

void find_kernel_waits(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  const Totals totals = sum_up(context);
  const auto runnable = static_cast<double>(totals.run_ns + totals.wait_ns);
  const double share = runnable <= 0 ? 0 : static_cast<double>(totals.wait_ns) / runnable;
  const bool has_late_unparks =
      totals.parks.count() != 0 && totals.parks.max() >= context.options.kernel_wait_floor_ns;
  if ((share < kInfoShare || totals.wait_ns < kMinTotalNs) && !has_late_unparks) {
    return;
  }
  Finding finding;
  finding.kind = FindingKind::kKernelWait;
  finding.count = trace.sched.size();
  const std::string own = own_doing(trace, totals);
  const double of_wall = static_cast<double>(totals.wait_ns) /
                         static_cast<double>(std::max<std::uint64_t>(trace.duration_ns(), 1));
  const bool is_own = share >= kWarningShare && !own.empty();
  const bool is_heavy = share >= kHeavyShare && of_wall >= kWallShare;
  if (totals.wait_ns >= kMinTotalNs && (is_own || is_heavy)) {
    finding.severity = share >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
  }
  if (!trace.sched.empty()) {
    const SchedSample& worst = trace.sched[totals.worst];
    finding.lane = trace.lane_of_worker(worst.worker);
    finding.end_ns = worst.at_ns;
    finding.at_ns = worst.at_ns - std::min(worst.at_ns, worst.run_ns + worst.wait_ns);
    finding.worst_ns = worst.wait_ns;
    finding.message = "workers waited " + human_duration(totals.wait_ns) +
                      " for a CPU while they ran " + human_duration(totals.run_ns) + " (" +
                      human_share(share) + " of the time that they could have run)";
  } else {
    finding.message = "workers waited for a CPU after waking up";
  }
  if (totals.worst_park != kNoIndex) {
    finding.evidence.push_back("wait for a CPU after an unpark: " + spread_text(totals.parks) +
                               " over " + human_count(totals.parks.count()) + " sampled unparks");
    if (trace.sched.empty()) {
      finding.count = totals.parks.count();
      finding.worst_ns = totals.parks.max();
      finding.lane = trace.parks.lane[totals.worst_park];
      finding.end_ns = trace.parks.end_ns[totals.worst_park];
      finding.at_ns = finding.end_ns - std::min(finding.end_ns, totals.parks.max());
    }
  }
  if (totals.excused_ns != 0) {
    finding.evidence.push_back("up to " + human_duration(totals.excused_ns) +
                               " more are taken off: the platform stalled meanwhile");
  }
  finding.evidence.push_back(
      own.empty()
          ? "nothing shows that this process is the cause: the machine may be busy otherwise"
          : own);
  finding.next = own.empty()
                     ? "look at what else runs on the machine, and at its CPU limit"
                     : "fewer busy threads, or more CPUs: count all pools of the process together";
  finding.where = "run queue of the kernel";
  finding.score = static_cast<double>(totals.wait_ns);
  out.push_back(std::move(finding));
}

}  // namespace dial9::analysis
