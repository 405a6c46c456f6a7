// See platform_stalls.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/platform_stalls.h"

#include <algorithm>
#include <array>

#include "analysis/counts.h"
#include "analysis/human.h"

namespace dial9::analysis {

std::string_view to_string(StallCause cause) {
  return kStallCauses[static_cast<std::size_t>(cause)];
}

std::string_view describe(StallCause cause) {
  switch (cause) {
    case StallCause::kLateWakeup:
      return "no thread of the process ran although one was due";
    case StallCause::kThrottled:
      return "the cgroup's CPU limit stopped the process";
    case StallCause::kSteal:
      return "the hypervisor gave the CPUs to others";
    case StallCause::kPressureCpu:
      return "tasks waited for a CPU";
    case StallCause::kPressureMemory:
      return "tasks waited for memory";
    case StallCause::kPressureIo:
      return "tasks waited for disks";
    case StallCause::kClockStep:
      return "the wall clock was set";
    case StallCause::kSuspend:
      return "the machine was suspended";
    case StallCause::kMajorFaults:
      return "pages were read from disk";
    case StallCause::kOther:
      break;
  }
  return "the platform stalled";
}

bool is_excuse(const PlatformStall& stall) {
  switch (stall.cause) {
    case StallCause::kLateWakeup:
    case StallCause::kThrottled:
    case StallCause::kSteal:
      return true;
    case StallCause::kPressureMemory:
      return stall.full_stalled_ns != kUnknownNs;
    default:
      return false;
  }
}

std::uint64_t most_stalled_ns(const PlatformStall& stall) {
  const std::uint64_t stalled_ns =
      stall.cause == StallCause::kPressureMemory ? stall.full_stalled_ns : stall.stalled_ns;
  return stalled_ns == kUnknownNs ? 0 : std::min(stalled_ns, stall.end_ns - stall.begin_ns);
}

PlatformStallIndex::PlatformStallIndex(const Trace& trace) {
  const auto add = [](std::vector<Span>& spans, const PlatformStall& stall) {
    const std::uint64_t before = spans.empty() ? 0 : spans.back().latest_end_ns;
    spans.push_back({&stall, std::max(before, stall.end_ns)});
  };
  for (std::size_t i = 0; i < trace.platform_stalls.size(); ++i) {
    const PlatformStall& stall = trace.platform_stalls[i];
    add(all_, stall);
    if (is_excuse(stall)) {
      add(excuses_, stall);
    }
  }
}

template <class Function>
void PlatformStallIndex::overlapping(const std::vector<Span>& spans, std::uint64_t from_ns,
                                     std::uint64_t to_ns, Function function) {
  auto at = std::lower_bound(
      spans.begin(), spans.end(), from_ns,
      [](const Span& span, std::uint64_t moment) { return span.latest_end_ns <= moment; });
  for (; at != spans.end() && at->stall->begin_ns < to_ns; ++at) {
    const PlatformStall& stall = *at->stall;
    if (stall.end_ns > from_ns) {
      function(stall, std::min(stall.end_ns, to_ns) - std::max(stall.begin_ns, from_ns));
    }
  }
}

template <class Takes>
std::uint64_t PlatformStallIndex::most_ns_of(std::uint64_t from_ns, std::uint64_t to_ns,
                                             Takes takes) const {
  if (to_ns <= from_ns) {
    return 0;
  }
  std::uint64_t sum = 0;
  overlapping(excuses_, from_ns, to_ns, [&](const PlatformStall& stall, std::uint64_t overlap_ns) {
    if (takes(stall)) {
      sum = sum_of(sum, std::min(most_stalled_ns(stall), overlap_ns));
    }
  });
  return std::min(sum, to_ns - from_ns);
}

std::uint64_t PlatformStallIndex::most_ns(std::uint64_t from_ns, std::uint64_t to_ns) const {
  return most_ns_of(from_ns, to_ns, [](const PlatformStall&) { return true; });
}

std::uint64_t PlatformStallIndex::most_throttled_ns(std::uint64_t from_ns,
                                                    std::uint64_t to_ns) const {
  return most_ns_of(from_ns, to_ns, [](const PlatformStall& stall) {
    return stall.cause == StallCause::kThrottled;
  });
}

std::string PlatformStallIndex::text(std::uint64_t from_ns, std::uint64_t to_ns) const {
  std::array<std::uint64_t, kStallCauses.size()> sums{};
  std::array<bool, kStallCauses.size()> is_there{};
  overlapping(all_, from_ns, to_ns, [&](const PlatformStall& stall, std::uint64_t overlap_ns) {
    const auto cause = static_cast<std::size_t>(stall.cause);
    is_there[cause] = true;
    const std::uint64_t stalled_ns = stall.stalled_ns == kUnknownNs ? 0 : stall.stalled_ns;
    sums[cause] = sum_of(sums[cause], std::min(stalled_ns, overlap_ns));
  });
  std::string text;
  for (std::size_t cause = 0; cause < sums.size(); ++cause) {
    if (!is_there[cause]) {
      continue;
    }
    text += text.empty() ? "" : "; ";
    text += describe(static_cast<StallCause>(cause));
    if (sums[cause] != 0) {
      text += " (up to " + human_duration(std::min(sums[cause], to_ns - from_ns)) + ")";
    }
  }
  return text;
}

}  // namespace dial9::analysis
