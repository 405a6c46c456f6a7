// What a report of waits off the CPU says, as text to compare.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "analysis/off_cpu.h"

namespace dial9::analysis::testing {

// "name proven+estimated waits", a line a group.
inline std::string groups(const Trace& trace, const OffCpuReportOptions& options = {}) {
  std::string text;
  for (const OffCpuGroup& group : off_cpu_report(trace, options, nullptr).groups) {
    text += (group.name.empty() ? "?" : group.name) + " " + std::to_string(group.proven_ns) + "+" +
            std::to_string(group.estimated_ns) + " " + std::to_string(group.waits) + "\n";
  }
  return text;
}

inline std::string notes(const OffCpuReport& report) {
  std::string text;
  for (const std::string& note : report.heading.notes) text += note + "\n";
  return text;
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dial9::analysis::testing
