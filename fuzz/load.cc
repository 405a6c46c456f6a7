// Any bytes through the engine: loader, diagnosis, reports, level of detail, census. Promises
// checked: no crash, no read outside (the sanitizers), every index of a trace inside its column,
// slices sorted and apart, and a report that is the same the second time.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/census.h"
#include "analysis/findings.h"
#include "analysis/loader.h"
#include "analysis/lod.h"
#include "analysis/report.h"
#include "check.h"

namespace dial9::fuzz {
namespace {

using namespace analysis;

void check_lane(const Trace& trace, const Lane& lane) {
  const Polls& polls = trace.polls;
  check(lane.polls.first <= lane.polls.last && lane.polls.last <= polls.size(), "polls of a lane");
  for (std::uint32_t i = lane.polls.first; i < lane.polls.last; ++i) {
    check(polls.start_ns[i] <= polls.end_ns[i], "a poll ends after it began");
    check(i == lane.polls.first || polls.end_ns[i - 1] <= polls.start_ns[i], "polls don't overlap");
    check(polls.ready_ns[i] == kUnknownNs || polls.ready_ns[i] <= polls.start_ns[i],
          "a poll was ready before it began");
    check(polls.task[i] == kNoIndex || polls.task[i] < trace.tasks.size(), "task of a poll");
    check(polls.wake[i] == kNoIndex || polls.wake[i] < trace.wakes.size(), "wake of a poll");
    check(polls.spawn_loc[i] < trace.names.size(), "name of a poll");
  }
  const Parks& parks = trace.parks;
  check(lane.parks.first <= lane.parks.last && lane.parks.last <= parks.size(), "parks of a lane");
  for (std::uint32_t i = lane.parks.first; i < lane.parks.last; ++i) {
    check(parks.start_ns[i] <= parks.end_ns[i], "a park ends after it began");
    check(i == lane.parks.first || parks.end_ns[i - 1] <= parks.start_ns[i], "parks don't overlap");
  }
}

void check_rest(const Trace& trace) {
  check(trace.begin_ns <= trace.end_ns, "a trace ends after it began");
  for (std::size_t i = 0; i < trace.tasks.size(); ++i) {
    check(trace.tasks.polls[i].last <= trace.task_polls.size(), "polls of a task");
    check(trace.tasks.wakes[i].last <= trace.wakes.size(), "wakes of a task");
  }
  const Spans& spans = trace.spans;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    check(spans.start_ns[i] <= spans.end_ns[i], "a span ends after it began");
    check(i == 0 || spans.start_ns[i - 1] <= spans.start_ns[i], "spans are sorted");
    check(spans.parent[i] == kNoIndex || spans.parent[i] < spans.size(), "parent of a span");
    check(spans.task[i] == kNoIndex || spans.task[i] < trace.tasks.size(), "task of a span");
    check(spans.row[i] < trace.span_rows, "row of a span");
    check(spans.fields[i].last <= trace.span_fields.size(), "fields of a span");
    check(spans.name[i] < trace.names.size(), "name of a span");
  }
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    check(trace.blocks[i].poll == kNoIndex || trace.blocks[i].poll < trace.polls.size(),
          "poll of a block");
  }
}

void look_at(const Trace& trace) {
  const LaneIndex index(trace);
  constexpr std::uint32_t kBins = 7;
  std::vector<Bin> bins(kBins);
  Window window;
  window.t0_ns = static_cast<double>(trace.begin_ns);
  window.bin_ns = static_cast<double>(trace.duration_ns()) / kBins + 1;
  window.bins = kBins;
  for (std::uint32_t lane = 0; lane < trace.lanes.size(); ++lane) {
    index.lane(lane).polls.query(window, bins);
    index.lane(lane).parks.query(window, bins);
    index.lane(lane).waits.query(window, bins);
  }
  for (std::uint32_t row = 0; row < trace.span_rows; ++row) {
    index.span_row(row).query(window, bins);
  }
}

void count(std::span<const std::uint8_t> bytes) {
  Census census;
  format::Decoder decoder(census.visitor());
  census.begin_input(decoder);
  (void)decoder.feed(bytes);
  (void)decoder.finish();
  check(census.begin_ns() <= census.end_ns(), "a census ends after it began");
}

}  // namespace
}  // namespace dial9::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dial9;
  using namespace dial9::fuzz;
  const std::span<const std::uint8_t> bytes(data, size);
  count(bytes);
  analysis::LoadOptions options;
  options.max_memory_bytes = std::uint64_t{256} << 20;
  const analysis::Trace trace = analysis::load(bytes, options);
  for (const analysis::Lane& lane : trace.lanes) {
    check_lane(trace, lane);
  }
  check_rest(trace);
  look_at(trace);
  const auto findings = analysis::diagnose(trace);
  check(!analysis::report_text(trace, findings).empty(), "a report says something");
  check(analysis::report_json(trace, findings) ==
            analysis::report_json(trace, analysis::diagnose(trace)),
        "a report is the same the second time");
  return 0;
}
