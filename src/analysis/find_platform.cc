// platform-stall: what the machine, the hypervisor or the limits of the cgroup did to the process;
// and a line about it in every finding of the same time. Spec: docs/spec/findings.md, "It was not
// you".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "analysis/counts.h"
#include "analysis/finders.h"
#include "analysis/human.h"

namespace dial9::analysis {
namespace {

constexpr std::uint64_t kMinTotalNs = 100'000'000;  // for a warning
constexpr double kWarningShare = 0.05;              // of the trace's time
constexpr double kCriticalShare = 0.25;
constexpr std::uint64_t kMinFaults = 1'000;  // major faults that are worth a line

struct OfCause {
  std::uint64_t times = 0;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;  // never more than the ranges
  std::uint64_t worst_ns = 0;
  std::size_t worst = 0;
};

std::string_view next_of(StallCause cause) {
  switch (cause) {
    case StallCause::kThrottled:
      return "a higher CPU limit, or fewer threads that are busy at once: the limit is per period";
    case StallCause::kSteal:
      return "the host of this virtual machine is overbooked: another host, or dedicated CPUs";
    case StallCause::kPressureMemory:
      return "memory is short: a higher limit, or a smaller working set";
    case StallCause::kMajorFaults:
      return "memory is short, or files are read by mapping them: see memory pressure beside it";
    case StallCause::kClockStep:
      return "wall times before and after don't compare; timers by the wall clock fired early or "
             "late";
    case StallCause::kPressureCpu:
    case StallCause::kPressureIo:
      return "see what else runs there; the process's own threads may be the cause";
    default:
      return "look at the machine: what else runs there, freezes, migrations of the virtual "
             "machine";
  }
}

// Pressure that the process itself may make is never more than a fact.
bool may_be_own(StallCause cause) {
  return cause == StallCause::kPressureCpu || cause == StallCause::kPressureIo;
}

std::string step_text(std::int64_t step_ns) {
  const std::uint64_t by = step_ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(step_ns)
                                       : static_cast<std::uint64_t>(step_ns);
  return human_duration(by) + (step_ns < 0 ? " back" : " ahead");
}

Severity severity_of(const Trace& trace, StallCause cause, const OfCause& of) {
  const double share = static_cast<double>(of.total_ns) /
                       static_cast<double>(std::max<std::uint64_t>(trace.duration_ns(), 1));
  if (may_be_own(cause) || cause == StallCause::kSuspend || cause == StallCause::kMajorFaults) {
    return Severity::kInfo;
  }
  if (cause == StallCause::kClockStep) {
    return Severity::kWarning;
  }
  if (of.total_ns < kMinTotalNs || share < kWarningShare) {
    return Severity::kInfo;
  }
  return share >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
}

Finding make_finding(const Trace& trace, StallCause cause, const OfCause& of) {
  const PlatformStall& worst = trace.platform_stalls[of.worst];
  Finding finding;
  finding.kind = FindingKind::kPlatformStall;
  finding.severity = severity_of(trace, cause, of);
  finding.where = std::string(to_string(cause));
  finding.count = of.times;
  finding.at_ns = worst.begin_ns;
  finding.end_ns = worst.end_ns;
  finding.score = static_cast<double>(of.total_ns);
  finding.message = "it was not the program: " + std::string(describe(cause));
  if (may_be_own(cause)) {
    finding.message = "pressure: " + std::string(describe(cause));
  }
  if (cause == StallCause::kMajorFaults) {
    finding.message = std::string(describe(cause)) + ", " + counted(of.count, "time");
  } else if (cause == StallCause::kClockStep) {
    finding.message += ", " + counted(of.times, "time") + ", by " + step_text(worst.step_ns);
  } else if (cause == StallCause::kSuspend) {
    finding.message +=
        ", " + counted(of.times, "time") + ", for up to " + human_duration(worst.stalled_ns);
    finding.worst_ns = worst.stalled_ns;
  } else {
    finding.message += " in " + std::to_string(of.times) +
                       (of.times == 1 ? " stretch" : " stretches") + ", up to " +
                       human_duration(of.total_ns) + " in all";
    finding.worst_ns = of.worst_ns;
    finding.evidence.push_back("the worst: up to " + human_duration(of.worst_ns) + " of " +
                               human_duration(worst.end_ns - worst.begin_ns));
  }
  if (worst.scope != kNoName) {
    finding.evidence.push_back(
        "counted for the " + std::string(trace.names.text(worst.scope)) +
        (cause == StallCause::kThrottled ? ", " + counted(of.count, "throttling") : ""));
  }
  finding.next = std::string(next_of(cause));
  return finding;
}

// Findings about what took long; others stand whatever the platform did.
bool is_about_time(FindingKind kind) {
  switch (kind) {
    case FindingKind::kLongPoll:
    case FindingKind::kReadyDelay:
    case FindingKind::kKernelWait:
    case FindingKind::kBlockingCall:
    case FindingKind::kStrandWait:
    case FindingKind::kAcceptQueue:
      return true;
    default:
      return false;
  }
}

}  // namespace

void find_platform_stalls(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  for (Finding& finding : out) {
    if (!is_about_time(finding.kind) || finding.at_ns == kUnknownNs) {
      continue;
    }
    const std::string text = context.platform.text(finding.at_ns, finding.end_ns);
    if (!text.empty()) {
      finding.evidence.push_back("meanwhile: " + text);
    }
  }
  std::array<OfCause, kStallCauses.size()> causes{};
  for (std::size_t i = 0; i < trace.platform_stalls.size(); ++i) {
    const PlatformStall& stall = trace.platform_stalls[i];
    OfCause& of = causes[static_cast<std::size_t>(stall.cause)];
    const std::uint64_t stalled_ns =
        stall.stalled_ns == kUnknownNs ? 0
                                       : std::min(stall.stalled_ns, stall.end_ns - stall.begin_ns);
    of.count = sum_of(of.count, stall.count);
    of.total_ns = sum_of(of.total_ns, stalled_ns);
    if (of.times++ == 0 || stalled_ns > of.worst_ns) {
      of.worst = i;
      of.worst_ns = stalled_ns;
    }
  }
  for (std::size_t c = 0; c < causes.size(); ++c) {
    const auto cause = static_cast<StallCause>(c);
    const bool is_worth_it = cause != StallCause::kMajorFaults || causes[c].count >= kMinFaults;
    if (causes[c].times != 0 && cause != StallCause::kOther && is_worth_it) {
      out.push_back(make_finding(trace, cause, causes[c]));
    }
  }
}

}  // namespace dial9::analysis
