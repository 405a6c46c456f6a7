// See series_columns.h.
// Strongest property: a value that isn't known is NaN, never zero.
// Spec: docs/spec/http_api.md, "Queues", "Custom events".
// SPDX-License-Identifier: Apache-2.0
#include "server/series_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "server/columns.h"

namespace dial9::server {
namespace {

using analysis::Column;

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

// The first row of a sorted column that is at or after `at_ns` (relative).
std::size_t first_at(const Run& run, const Column<std::uint64_t>& times, double at_ns) {
  std::size_t low = 0;
  std::size_t high = times.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (run.relative(times[middle]) < at_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::uint32_t bin_of(const Run& run, const WindowQuery& window, std::uint64_t at_ns) {
  const double bin = (run.relative(at_ns) - window.t0_ns) / window.bin_ns;
  return static_cast<std::uint32_t>(std::clamp(bin, 0.0, static_cast<double>(window.bins - 1)));
}

struct Table {
  std::size_t index;
  std::size_t first;
  std::size_t last;
  int field;  // -1: none of that name
};

std::vector<Table> tables_in(const Run& run, const WindowQuery& window, std::string_view type,
                             std::string_view field) {
  const auto& trace = run.trace();
  std::vector<Table> out;
  for (std::size_t i = 0; i < trace.custom.size(); ++i) {
    const auto& table = trace.custom[i];
    if (!table.has_timestamp || trace.names.text(table.name) != type) continue;
    int at = -1;
    for (std::size_t f = 0; f < table.fields.size() && !field.empty(); ++f) {
      if (trace.names.text(table.fields[f].name) == field) at = static_cast<int>(f);
    }
    out.push_back({i, first_at(run, table.at_ns, window.t0_ns),
                   first_at(run, table.at_ns, window.t1_ns()), at});
  }
  return out;
}

double value_of(const Run& run, const Table& table, std::size_t row) {
  if (table.field < 0) return std::numeric_limits<double>::quiet_NaN();
  const auto cell =
      run.trace().custom[table.index].cell(row, static_cast<std::size_t>(table.field));
  return cell.is_number() ? cell.number() : std::numeric_limits<double>::quiet_NaN();
}

struct EventBin {
  std::uint32_t count = 0;
  std::uint32_t index = kNoIndex;  // of the largest value, or the first event
  float least = kUnknown;
  float most = kUnknown;
};

void add_to_bin(EventBin& bin, std::uint32_t index, double value) {
  const auto number = static_cast<float>(value);
  const bool is_first = bin.count++ == 0;
  if (std::isnan(number)) {
    if (is_first) bin.index = index;
    return;
  }
  if (std::isnan(bin.least) || number < bin.least) bin.least = number;
  if (std::isnan(bin.most) || number > bin.most) {
    bin.most = number;
    bin.index = index;
  }
}

}  // namespace

std::string queue_columns(const Run& run, const WindowQuery& window) {
  std::vector<std::uint32_t> series, bin;
  std::vector<float> least, most, last, carry;
  for (std::size_t s = 0; s < std::min(run.trace().series.size(), kMaxQueues); ++s) {
    const auto& samples = run.trace().series[s];
    std::size_t row = first_at(run, samples.at_ns, window.t0_ns);
    carry.push_back(row == 0 ? kUnknown : static_cast<float>(samples.value[row - 1]));
    bool is_open = false;
    for (; row < samples.at_ns.size(); ++row) {
      if (run.relative(samples.at_ns[row]) >= window.t1_ns()) break;
      const auto value = static_cast<float>(samples.value[row]);
      const std::uint32_t at = bin_of(run, window, samples.at_ns[row]);
      if (!is_open || bin.back() != at) {
        is_open = true;
        series.push_back(static_cast<std::uint32_t>(s));
        bin.push_back(at);
        least.push_back(value);
        most.push_back(value);
        last.push_back(value);
      }
      least.back() = std::min(least.back(), value);
      most.back() = std::max(most.back(), value);
      last.back() = value;
    }
  }
  ColumnWriter out;
  out.add("series", series);
  out.add("bin", bin);
  out.add("min", least);
  out.add("max", most);
  out.add("last", last);
  out.add("carry", carry);
  return out.finish(run.generation());
}

std::string event_columns(const Run& run, const WindowQuery& window, std::string_view type,
                          std::string_view field) {
  const auto tables = tables_in(run, window, type, field);
  std::size_t total = 0;
  for (const Table& table : tables) total += table.last - table.first;
  std::vector<double> time, value;
  std::vector<std::uint32_t> index, bin, count, largest;
  std::vector<float> least, most;
  std::vector<EventBin> bins(total <= window.exact ? 0 : window.bins);
  for (const Table& table : tables) {
    const auto& times = run.trace().custom[table.index].at_ns;
    for (std::size_t row = table.first; row < table.last; ++row) {
      const std::uint32_t number = run.event_index(table.index, row);
      if (bins.empty()) {
        time.push_back(run.relative(times[row]));
        index.push_back(number);
        value.push_back(value_of(run, table, row));
      } else {
        add_to_bin(bins[bin_of(run, window, times[row])], number, value_of(run, table, row));
      }
    }
  }
  for (std::uint32_t i = 0; i < bins.size(); ++i) {
    if (bins[i].count == 0) continue;
    bin.push_back(i);
    count.push_back(bins[i].count);
    least.push_back(bins[i].least);
    most.push_back(bins[i].most);
    largest.push_back(bins[i].index);
  }
  ColumnWriter out;
  out.add("time", time);
  out.add("index", index);
  out.add("value", value);
  out.add("bin", bin);
  out.add("n", count);
  out.add("min", least);
  out.add("max", most);
  out.add("maxidx", largest);
  return out.finish(run.generation());
}

}  // namespace dial9::server
