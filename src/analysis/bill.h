// What recording cost, as the recorder's own bills in the trace say. Strongest property: what no
// bill tells is not told. Spec: docs/spec/events_ours.md, "RecorderBillEvent".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/trace.h"

namespace dial9::analysis {

// Sums over the bills.
struct RecorderBill {
  std::uint64_t bills = 0;       // 0: the trace has none
  std::uint64_t elapsed_ns = 0;  // that they cover
  std::uint64_t collector_cpu_ns = 0;
  std::uint64_t host_cpu_ns = 0;  // an estimate
  // What the kernel took on the host's threads for the trace's CPU samples is in no bill, and
  // isn't known.
  bool lacks_kernel_time = false;
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t shed = 0;  // events left out to keep within a budget
};

// O(bills).
RecorderBill recorder_bill(const Trace& trace);

}  // namespace dial9::analysis
