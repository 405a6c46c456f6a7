// See sample_columns.h.
// Strongest property: every sample of the window is in the reply, by itself or in a bin's count.
// Spec: docs/spec/http_api.md, "Samples".
// SPDX-License-Identifier: Apache-2.0
#include "server/sample_columns.h"

#include <vector>

#include "server/row_columns.h"

namespace dial9::server {
namespace {

// The first sample of the range at or after `at_ns` (relative).
std::uint32_t first_at(const Run& run, analysis::Range range, double at_ns) {
  while (!range.empty()) {
    const std::uint32_t middle = range.first + range.size() / 2;
    if (run.relative(run.trace().samples[middle].at_ns) < at_ns) {
      range.first = middle + 1;
    } else {
      range.last = middle;
    }
  }
  return range.first;
}

struct Reply {
  RowColumns rows;
  std::vector<std::uint32_t> index, bin, n, first;
  std::vector<double> time;

  void end_row(std::uint8_t mode) { rows.end(mode, time.size(), bin.size()); }
};

void add_row(const Run& run, const WindowQuery& window, analysis::Range samples, Reply& out) {
  const analysis::Range seen{first_at(run, samples, window.t0_ns),
                             first_at(run, samples, window.t1_ns())};
  if (seen.size() <= window.exact) {
    for (std::uint32_t i = seen.first; i < seen.last; ++i) {
      out.time.push_back(run.relative(run.trace().samples[i].at_ns));
      out.index.push_back(i);
    }
    out.end_row(seen.empty() ? kModeEmpty : kModeExact);
    return;
  }
  std::uint32_t from = seen.first;
  for (std::uint32_t bin = 0; bin < window.bins && from < seen.last; ++bin) {
    const std::uint32_t to =
        first_at(run, {from, seen.last}, window.t0_ns + window.bin_ns * (bin + 1));
    if (to == from) continue;
    out.bin.push_back(bin);
    out.n.push_back(to - from);
    out.first.push_back(from);
    from = to;
  }
  out.end_row(kModeBins);
}

}  // namespace

std::string sample_columns(const Run& run, const WindowQuery& window, std::uint32_t first,
                           std::uint32_t count) {
  Reply reply;
  for (std::uint32_t row = first; row < first + count; ++row) {
    add_row(run, window, run.trace().sample_rows[row].samples, reply);
  }
  ColumnWriter out;
  reply.rows.add_to(out);
  out.add("time", reply.time);
  out.add("index", reply.index);
  out.add("bin", reply.bin);
  out.add("n", reply.n);
  out.add("first", reply.first);
  return out.finish(run.generation());
}

}  // namespace dial9::server
