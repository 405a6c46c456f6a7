// See lane_columns.h.
// Strongest property: what is exact is never mixed with what is summed up within one lane.
// Spec: docs/spec/http_api.md, "Lanes".
// SPDX-License-Identifier: Apache-2.0
#include "server/lane_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/row_columns.h"

namespace dial9::server {
namespace {

using analysis::Bin;
using analysis::Range;
using analysis::Trace;

enum Kind : std::uint8_t { kPoll = 0, kPark = 1, kWait = 2 };

struct Slice {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  Kind kind;
  std::uint32_t row;  // poll or park index
};

class LaneReply {
 public:
  explicit LaneReply(const Run& run) : run_(run), trace_(run.trace()) {}

  void add_exact(std::vector<Slice>& slices) {
    std::ranges::sort(slices, {}, &Slice::start_ns);
    for (const Slice& slice : slices) add_slice(slice);
    end_lane(slices.empty() ? kModeEmpty : kModeExact);
  }

  void add_bin(std::uint32_t bin, double bin_ns, const Bin& poll, const Bin& park,
               const Bin& wait) {
    if (poll.starts == 0 && poll.longest == analysis::kNoIndex && park.busy_ns <= 0 &&
        wait.busy_ns <= 0) {
      return;
    }
    bin_.push_back(bin);
    poll_.push_back(static_cast<float>(poll.busy_ns / bin_ns));
    park_.push_back(static_cast<float>(park.busy_ns / bin_ns));
    wait_.push_back(static_cast<float>(wait.busy_ns / bin_ns));
    n_.push_back(poll.starts);
    maxdur_.push_back(static_cast<float>(poll.longest_ns));
    maxidx_.push_back(poll.longest);
  }

  void end_lane(std::uint8_t mode) { rows_.end(mode, start_.size(), bin_.size()); }

  std::string finish() {
    ColumnWriter out;
    rows_.add_to(out);
    out.add("start", start_);
    out.add("dur", dur_);
    out.add("kind", kind_);
    out.add("index", index_);
    out.add("task", task_);
    out.add("loc", loc_);
    out.add("flag", flag_);
    out.add("ready", ready_);
    out.add("bin", bin_);
    out.add("poll", poll_);
    out.add("park", park_);
    out.add("wait", wait_);
    out.add("n", n_);
    out.add("maxdur", maxdur_);
    out.add("maxidx", maxidx_);
    out.add_text("tasks", tasks_.texts());
    out.add_text("locs", locs_.texts());
    return out.finish(run_.generation());
  }

 private:
  void add_slice(const Slice& slice) {
    const bool is_poll = slice.kind == kPoll;
    start_.push_back(run_.relative(slice.start_ns));
    dur_.push_back(static_cast<double>(slice.end_ns - slice.start_ns));
    kind_.push_back(slice.kind);
    index_.push_back(is_poll ? slice.row : kNoIndex);
    task_.push_back(is_poll ? task_number(trace_.polls.task[slice.row]) : kNoIndex);
    loc_.push_back(is_poll ? loc_number(trace_.polls.spawn_loc[slice.row]) : kNoIndex);
    const std::uint8_t open = is_poll ? trace_.polls.flags[slice.row] & analysis::kPollOpen
                                      : trace_.parks.flags[slice.row] & analysis::kParkOpen;
    flag_.push_back(open != 0 ? 1 : 0);
    const auto ready =
        is_poll ? run_.known_relative(trace_.polls.ready_ns[slice.row]) : std::nullopt;
    ready_.push_back(ready.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  std::uint32_t task_number(std::uint32_t task) {
    if (task == analysis::kNoIndex) return kNoIndex;
    return tasks_.number(task, [&] { return std::to_string(trace_.tasks.id[task]); });
  }
  std::uint32_t loc_number(analysis::NameId loc) {
    if (loc == analysis::kNoName) return kNoIndex;
    return locs_.number(loc, [&] { return std::string(trace_.names.text(loc)); });
  }

  const Run& run_;
  const Trace& trace_;
  RowColumns rows_;
  std::vector<std::uint8_t> kind_, flag_;
  std::vector<std::uint32_t> index_, task_, loc_, bin_, n_, maxidx_;
  std::vector<double> start_, dur_, ready_;
  std::vector<float> poll_, park_, wait_, maxdur_;
  Dictionary<std::uint32_t> tasks_, locs_;
};

void add_whole_lane(const Run& run, const WindowQuery& window, std::uint32_t lane,
                    LaneReply& reply) {
  const auto& index = run.index().lane(lane);
  const double from = window.absolute_t0(run);
  const double to = window.absolute_t1(run);
  const Range polls = index.polls.touching(from, to);
  const Range parks = index.parks.touching(from, to);
  const Range waits = index.waits.touching(from, to);
  if (polls.size() + parks.size() + waits.size() <= window.exact) {
    const Trace& trace = run.trace();
    const auto& kernel = run.index().kernel_waits();
    std::vector<Slice> slices;
    for (std::uint32_t i = polls.first; i < polls.last; ++i) {
      slices.push_back({trace.polls.start_ns[i], trace.polls.end_ns[i], kPoll, i});
    }
    for (std::uint32_t i = parks.first; i < parks.last; ++i) {
      slices.push_back({trace.parks.start_ns[i], trace.parks.end_ns[i], kPark, i});
    }
    for (std::uint32_t i = waits.first; i < waits.last; ++i) {
      slices.push_back({kernel.start_ns[i], kernel.end_ns[i], kWait, kernel.park[i]});
    }
    reply.add_exact(slices);
    return;
  }
  std::vector<Bin> poll(window.bins), park(window.bins), wait(window.bins);
  const analysis::Window absolute = window.absolute(run);
  index.polls.query(absolute, poll);
  index.parks.query(absolute, park);
  index.waits.query(absolute, wait);
  for (std::uint32_t bin = 0; bin < window.bins; ++bin) {
    reply.add_bin(bin, window.bin_ns, poll[bin], park[bin], wait[bin]);
  }
  reply.end_lane(kModeBins);
}

// Adds one poll to the bins that it touches.
void spread(const Run& run, const WindowQuery& window, std::uint32_t poll, std::vector<Bin>& bins) {
  const auto& polls = run.trace().polls;
  const double start = run.relative(polls.start_ns[poll]) - window.t0_ns;
  const double end = run.relative(polls.end_ns[poll]) - window.t0_ns;
  const double last_bin = static_cast<double>(window.bins - 1);
  const double first = std::clamp(std::floor(start / window.bin_ns), 0.0, last_bin);
  const double last = std::clamp(std::floor(end / window.bin_ns), 0.0, last_bin);
  const std::uint64_t duration = polls.duration_ns(poll);
  for (std::size_t i = static_cast<std::size_t>(first); i <= static_cast<std::size_t>(last); ++i) {
    const double left = static_cast<double>(i) * window.bin_ns;
    bins[i].busy_ns += std::max(std::min(end, left + window.bin_ns) - std::max(start, left), 0.0);
    if (bins[i].longest == analysis::kNoIndex || duration > bins[i].longest_ns) {
      bins[i].longest_ns = duration;
      bins[i].longest = poll;
    }
  }
  if (start >= 0 && start < window.bin_ns * window.bins) {
    bins[static_cast<std::size_t>(first)].starts += 1;
  }
}

// The polls of a task that touch the window, a list a lane.
std::vector<std::vector<std::uint32_t>> task_polls_in(const Run& run, const WindowQuery& window,
                                                      LaneRange lanes, std::uint32_t task) {
  const Trace& trace = run.trace();
  std::vector<std::vector<std::uint32_t>> out(lanes.count);
  // What began before the window and reaches into it covers its start. Polls of one task may
  // overlap (ids that a program uses twice), those of a lane never do, so each lane is asked.
  for (std::uint32_t i = 0; i < lanes.count && window.t0_ns > 0; ++i) {
    const auto t0_ns = trace.begin_ns + static_cast<std::uint64_t>(window.t0_ns);
    const std::uint32_t poll = trace.poll_at(lanes.first + i, t0_ns);
    if (poll != analysis::kNoIndex && trace.polls.task[poll] == task &&
        run.relative(trace.polls.start_ns[poll]) < window.t0_ns) {
      out[i].push_back(poll);
    }
  }
  const Range range = trace.tasks.polls[task];
  std::uint32_t low = range.first;
  std::uint32_t high = range.last;
  while (low < high) {  // the first poll that starts in the window
    const std::uint32_t middle = low + (high - low) / 2;
    if (run.relative(trace.polls.start_ns[trace.task_polls[middle]]) < window.t0_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (std::uint32_t i = low; i < range.last; ++i) {
    const std::uint32_t poll = trace.task_polls[i];
    if (run.relative(trace.polls.start_ns[poll]) >= window.t1_ns()) break;
    const std::uint32_t lane = trace.polls.lane[poll];
    if (lane >= lanes.first && lane - lanes.first < lanes.count) {
      out[lane - lanes.first].push_back(poll);
    }
  }
  return out;
}

}  // namespace

std::string lane_columns(const Run& run, const WindowQuery& window, LaneRange lanes) {
  LaneReply reply(run);
  for (std::uint32_t i = 0; i < lanes.count; ++i) {
    add_whole_lane(run, window, lanes.first + i, reply);
  }
  return reply.finish();
}

std::string task_lane_columns(const Run& run, const WindowQuery& window, LaneRange lanes,
                              std::uint32_t task) {
  LaneReply reply(run);
  const auto& polls = run.trace().polls;
  for (const auto& of_lane : task_polls_in(run, window, lanes, task)) {
    if (of_lane.size() <= window.exact) {
      std::vector<Slice> slices;
      for (const std::uint32_t poll : of_lane) {
        slices.push_back({polls.start_ns[poll], polls.end_ns[poll], kPoll, poll});
      }
      reply.add_exact(slices);
      continue;
    }
    std::vector<Bin> bins(window.bins);
    for (const std::uint32_t poll : of_lane) spread(run, window, poll, bins);
    for (std::uint32_t bin = 0; bin < window.bins; ++bin) {
      reply.add_bin(bin, window.bin_ns, bins[bin], Bin{}, Bin{});
    }
    reply.end_lane(kModeBins);
  }
  return reply.finish();
}

}  // namespace dial9::server
