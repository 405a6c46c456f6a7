// See bill.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/bill.h"

#include "analysis/counts.h"

namespace dial9::analysis {
namespace {

// The field of the table as a sum; 0 where it has none of that name.
std::uint64_t sum_of_field(const Trace& trace, const EventTable& table, std::string_view name) {
  std::uint64_t sum = 0;
  for (std::size_t field = 0; field < table.fields.size(); ++field) {
    if (trace.names.text(table.fields[field].name) != name) {
      continue;
    }
    for (std::size_t row = 0; row < table.size(); ++row) {
      const Cell cell = table.cell(row, field);
      sum = sum_of(sum, cell.type == CellType::kU64 ? cell.bits : 0);
    }
    break;
  }
  return sum;
}

}  // namespace

RecorderBill recorder_bill(const Trace& trace) {
  RecorderBill bill;
  bill.lacks_kernel_time = trace.samples.size() != 0;
  for (const EventTable& table : trace.custom) {
    if (trace.names.text(table.name) != "RecorderBillEvent") {
      continue;
    }
    const auto add = [&](std::uint64_t& to, std::string_view name) {
      to = sum_of(to, sum_of_field(trace, table, name));
    };
    bill.bills += table.size();
    add(bill.elapsed_ns, "elapsed_ns");
    add(bill.collector_cpu_ns, "collector_cpu_ns");
    add(bill.host_cpu_ns, "host_cpu_ns");
    add(bill.bytes, "bytes");
    add(bill.events, "events");
    add(bill.shed, "shed");
  }
  return bill;
}

}  // namespace dial9::analysis
