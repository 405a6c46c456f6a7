// See span_columns.h.
// Strongest property: a span that ends with the trace, or was cancelled, is never shown as
// finished.
// Spec: docs/spec/http_api.md, "Spans", "Minimap".
// SPDX-License-Identifier: Apache-2.0
#include "server/span_columns.h"

#include <algorithm>
#include <vector>

#include "server/row_columns.h"

namespace dial9::server {
namespace {

using analysis::Bin;
using analysis::Range;

constexpr std::uint8_t kOpen = 1;
constexpr std::uint8_t kUncompleted = 2;

class SpanReply {
 public:
  explicit SpanReply(const Run& run) : run_(run) {}

  void add_exact(Range positions) {
    for (std::uint32_t i = positions.first; i < positions.last; ++i) {
      add_span(run_.index().row_spans()[i]);
    }
    end_row(positions.empty() ? kModeEmpty : kModeExact);
  }

  void add_bins(const analysis::Pyramid& row, const WindowQuery& window) {
    std::vector<Bin> bins(window.bins);
    row.query(window.absolute(run_), bins);
    for (std::uint32_t i = 0; i < window.bins; ++i) {
      if (bins[i].longest == analysis::kNoIndex && bins[i].starts == 0) continue;
      bin_.push_back(i);
      busy_.push_back(static_cast<float>(bins[i].busy_ns / window.bin_ns));
      n_.push_back(bins[i].starts);
      maxdur_.push_back(static_cast<float>(bins[i].longest_ns));
      maxidx_.push_back(bins[i].longest == analysis::kNoIndex
                            ? kNoIndex
                            : run_.index().row_spans()[bins[i].longest]);
    }
    end_row(kModeBins);
  }

  std::string finish() {
    ColumnWriter out;
    rows_.add_to(out);
    out.add("start", start_);
    out.add("dur", dur_);
    out.add("index", index_);
    out.add("name", name_);
    out.add("flag", flag_);
    out.add("bin", bin_);
    out.add("busy", busy_);
    out.add("n", n_);
    out.add("maxdur", maxdur_);
    out.add("maxidx", maxidx_);
    out.add_text("names", names_.texts());
    return out.finish(run_.generation());
  }

 private:
  void add_span(std::uint32_t span) {
    const auto& spans = run_.trace().spans;
    start_.push_back(run_.relative(spans.start_ns[span]));
    dur_.push_back(static_cast<double>(spans.end_ns[span] - spans.start_ns[span]));
    index_.push_back(span);
    const analysis::NameId name = spans.name[span];
    name_.push_back(
        names_.number(name, [&] { return std::string(run_.trace().names.text(name)); }));
    const std::uint8_t flags = spans.flags[span];
    flag_.push_back(
        static_cast<std::uint8_t>(((flags & analysis::kSpanOpen) != 0 ? kOpen : 0) |
                                  ((flags & analysis::kSpanCancelled) != 0 ? kUncompleted : 0)));
  }
  void end_row(std::uint8_t mode) { rows_.end(mode, start_.size(), bin_.size()); }

  const Run& run_;
  RowColumns rows_;
  std::vector<std::uint8_t> flag_;
  std::vector<std::uint32_t> index_, name_, bin_, n_, maxidx_;
  std::vector<double> start_, dur_;
  std::vector<float> busy_, maxdur_;
  Dictionary<analysis::NameId> names_;
};

struct Strip {
  Strip(const Run& given, std::uint32_t count)
      : run(given),
        bins(count),
        busy(count),
        maxdur(count),
        events(count),
        loss(count),
        find(count) {
    bin_ns = std::max(static_cast<double>(run.trace().duration_ns()) / count, 1e-3);
  }

  std::size_t bin_of(std::uint64_t at_ns) const {
    const double bin = run.relative(at_ns) / bin_ns;
    return static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(bins - 1)));
  }
  void count_all(const analysis::Column<std::uint64_t>& times) {
    for (std::size_t i = 0; i < times.size(); ++i) events[bin_of(times[i])] += 1;
  }

  const Run& run;
  std::uint32_t bins;
  double bin_ns;
  std::vector<float> busy, maxdur;
  std::vector<std::uint32_t> events;
  std::vector<std::uint8_t> loss, find;
};

void add_lanes(Strip& strip) {
  const auto& trace = strip.run.trace();
  const WindowQuery window{0, strip.bin_ns, strip.bins, 1};
  std::vector<Bin> bins(strip.bins);
  const double whole =
      strip.bin_ns * static_cast<double>(std::max<std::size_t>(trace.lanes.size(), 1));
  for (std::uint32_t lane = 0; lane < trace.lanes.size(); ++lane) {
    strip.run.index().lane(lane).polls.query(window.absolute(strip.run), bins);
    for (std::uint32_t i = 0; i < strip.bins; ++i) {
      strip.busy[i] += static_cast<float>(bins[i].busy_ns / whole);
      strip.maxdur[i] = std::max(strip.maxdur[i], static_cast<float>(bins[i].longest_ns));
      strip.events[i] += bins[i].starts;
    }
  }
}

void add_marks(Strip& strip) {
  const auto& trace = strip.run.trace();
  for (const auto& loss : trace.loss) {
    const std::size_t last = strip.bin_of(loss.last_ns);
    for (std::size_t i = strip.bin_of(loss.first_ns); i <= last; ++i) strip.loss[i] = 1;
  }
  for (const auto& finding : strip.run.findings()) {
    if (finding.at_ns == analysis::kUnknownNs) continue;
    auto& find = strip.find[strip.bin_of(finding.at_ns)];
    const auto rank = static_cast<std::uint8_t>(static_cast<std::uint8_t>(finding.severity) + 1);
    find = std::max(find, rank);
  }
}

}  // namespace

std::string span_columns(const Run& run, const WindowQuery& window, std::uint32_t first,
                         std::uint32_t count) {
  SpanReply reply(run);
  for (std::uint32_t i = first; i < first + count; ++i) {
    const auto& row = run.index().span_row(i);
    const Range positions = row.touching(window.absolute_t0(run), window.absolute_t1(run));
    if (positions.size() <= window.exact) {
      reply.add_exact(positions);
    } else {
      reply.add_bins(row, window);
    }
  }
  return reply.finish();
}

std::string minimap_columns(const Run& run, std::uint32_t bins) {
  Strip strip(run, bins);
  add_lanes(strip);
  strip.count_all(run.trace().parks.start_ns);
  strip.count_all(run.trace().spans.start_ns);
  for (const auto& table : run.trace().custom) {
    if (table.has_timestamp) strip.count_all(table.at_ns);
  }
  const auto& samples = run.trace().samples;
  for (std::size_t i = 0; i < samples.size(); ++i)
    strip.events[strip.bin_of(samples[i].at_ns)] += 1;
  add_marks(strip);
  ColumnWriter out;
  out.add("busy", strip.busy);
  out.add("maxdur", strip.maxdur);
  out.add("events", strip.events);
  out.add("loss", strip.loss);
  out.add("find", strip.find);
  return out.finish(run.generation());
}

}  // namespace dial9::server
