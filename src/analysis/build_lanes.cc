// From raw starts, ends, parks and unparks of each worker to lanes of slices. A lane is a small
// state machine over its records in time order; what the records leave open is flagged, never
// guessed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "analysis/loader_impl.h"
#include "analysis/packing.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

struct PollSlice {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t task;
  NameId spawn_loc;
  std::uint8_t flags;
  std::uint8_t local_queue;
};

struct ParkSlice {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint64_t kernel_wait_ns = kUnknownNs;
  std::uint64_t cpu_start_ns = kUnknownNs;
  std::uint64_t cpu_end_ns = kUnknownNs;
  std::uint32_t tid = 0;
  std::uint8_t flags = 0;
};

struct Slices {
  std::vector<PollSlice> polls;
  std::vector<ParkSlice> parks;
  std::uint64_t unmatched_ends = 0;
};

// Pairs the records of one sequence (a worker, or one stream of a shared worker id).
class Pairing {
 public:
  Pairing(Slices& out, std::uint64_t trace_end_ns) : out_(out), trace_end_ns_(trace_end_ns) {}

  // At equal stamps: an end before a park, an unpark before a start.
  void run(std::span<RawPoll> polls, std::span<const RawPark> parks) {
    std::size_t p = 0;
    std::size_t k = 0;
    while (p < polls.size() || k < parks.size()) {
      if (k == parks.size() || (p < polls.size() && is_before(polls[p], parks[k]))) {
        take_end_of_same_stamp_first(polls, p);
        on_poll(polls[p++]);
      } else {
        on_park(parks[k++]);
      }
    }
    finish();
  }

 private:
  static bool is_before(const RawPoll& poll, const RawPark& park) {
    return poll.at_ns < park.at_ns ||
           (poll.at_ns == park.at_ns && (poll.kind == RawPollKind::kEnd || park.is_park));
  }

  // Files given in another order may put a start before the end that shares its stamp.
  void take_end_of_same_stamp_first(std::span<RawPoll> polls, std::size_t p) {
    if (is_polling_ && polls[p].kind == RawPollKind::kStart && p + 1 < polls.size() &&
        polls[p + 1].kind == RawPollKind::kEnd && polls[p + 1].at_ns == polls[p].at_ns) {
      std::swap(polls[p], polls[p + 1]);
    }
  }

  void on_poll(const RawPoll& raw) {
    if (raw.kind == RawPollKind::kStart) {
      end_poll(raw.at_ns, kPollEndLost);
      end_park(raw.at_ns, kParkEndLost);
      poll_ = {raw.at_ns, 0, raw.task, raw.spawn_loc, 0, raw.local_queue};
      is_polling_ = true;
    } else if (is_polling_) {
      end_poll(raw.at_ns, 0);
    } else {
      ++out_.unmatched_ends;
    }
  }

  void on_park(const RawPark& raw) {
    end_poll(raw.at_ns, kPollEndLost);
    if (raw.is_park) {
      end_park(raw.at_ns, kParkEndLost);
      park_ = {raw.at_ns, 0, kUnknownNs, raw.cpu_ns, kUnknownNs, raw.tid, 0};
      is_parked_ = true;
      return;
    }
    if (!is_parked_) {
      park_ = {raw.at_ns, 0, kUnknownNs, kUnknownNs, kUnknownNs, raw.tid, kParkStartLost};
      is_parked_ = true;
    }
    park_.kernel_wait_ns = raw.kernel_wait_ns;
    park_.cpu_end_ns = raw.cpu_ns;
    park_.tid = raw.tid != 0 ? raw.tid : park_.tid;
    end_park(raw.at_ns, 0);
  }

  void end_poll(std::uint64_t at_ns, std::uint8_t flag) {
    if (is_polling_) {
      poll_.end_ns = std::max(at_ns, poll_.start_ns);
      poll_.flags = flag;
      out_.polls.push_back(poll_);
      is_polling_ = false;
    }
  }

  void end_park(std::uint64_t at_ns, std::uint8_t flag) {
    if (is_parked_) {
      park_.end_ns = std::max(at_ns, park_.start_ns);
      park_.flags = static_cast<std::uint8_t>(park_.flags | flag);
      out_.parks.push_back(park_);
      is_parked_ = false;
    }
  }

  void finish() {
    end_poll(trace_end_ns_, kPollOpen);
    end_park(trace_end_ns_, kParkOpen);
  }

  Slices& out_;
  std::uint64_t trace_end_ns_;
  PollSlice poll_{};
  ParkSlice park_{};
  bool is_polling_ = false;
  bool is_parked_ = false;
};

template <class Raw>
std::vector<Raw> take_sorted(Column<Raw>& column, bool has_disorder) {
  std::vector<Raw> rows;
  rows.reserve(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    rows.push_back(column[i]);
  }
  column.clear();
  if (has_disorder) {
    dial9::stable_sort(rows.begin(), rows.end(),
                       [](const Raw& a, const Raw& b) { return a.at_ns < b.at_ns; });
  }
  return rows;
}

// Records of a shared id can be told apart only by the stream that they came in: one thread's
// flush.
Slices pair_shared(std::vector<RawPoll> polls, std::vector<RawPark> parks,
                   std::uint64_t trace_end_ns) {
  const auto by_stream = [](const auto& a, const auto& b) { return a.stream < b.stream; };
  dial9::stable_sort(polls.begin(), polls.end(), by_stream);
  dial9::stable_sort(parks.begin(), parks.end(), by_stream);
  Slices slices;
  std::size_t p = 0;
  std::size_t k = 0;
  while (p < polls.size() || k < parks.size()) {
    const std::uint32_t stream = std::min(p < polls.size() ? polls[p].stream : ~std::uint32_t{0},
                                          k < parks.size() ? parks[k].stream : ~std::uint32_t{0});
    std::size_t p_end = p;
    std::size_t k_end = k;
    while (p_end < polls.size() && polls[p_end].stream == stream) {
      ++p_end;
    }
    while (k_end < parks.size() && parks[k_end].stream == stream) {
      ++k_end;
    }
    // What is open at the stream's end isn't open at the trace's: its end is in another stream.
    std::uint64_t last_ns = 0;
    last_ns = p_end > p ? std::max(last_ns, polls[p_end - 1].at_ns) : last_ns;
    last_ns = k_end > k ? std::max(last_ns, parks[k_end - 1].at_ns) : last_ns;
    const std::size_t polls_before = slices.polls.size();
    Pairing(slices, std::min(last_ns, trace_end_ns))
        .run(std::span(polls).subspan(p, p_end - p), std::span(parks).subspan(k, k_end - k));
    for (std::size_t i = polls_before; i < slices.polls.size(); ++i) {
      if (slices.polls[i].flags == kPollOpen) {
        slices.polls[i].flags = kPollEndLost;
      }
    }
    p = p_end;
    k = k_end;
  }
  const auto by_start = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
  dial9::stable_sort(slices.polls.begin(), slices.polls.end(), by_start);
  dial9::stable_sort(slices.parks.begin(), slices.parks.end(), by_start);
  return slices;
}

// The slices of each row in which none overlap.
template <class Slice>
std::vector<std::vector<Slice>> pack(const std::vector<Slice>& slices) {
  RowPacker packer;
  std::vector<std::vector<Slice>> rows;
  for (const Slice& slice : slices) {
    const std::uint32_t row = packer.place(slice.start_ns, slice.end_ns);
    if (row == rows.size()) {
      rows.emplace_back();
    }
    rows[row].push_back(slice);
  }
  return rows;
}

class LaneWriter {
 public:
  LaneWriter(Trace& trace, std::uint32_t worker, std::uint32_t part)
      : trace_(trace), index_(static_cast<std::uint32_t>(trace.lanes.size())) {
    lane_.worker = worker;
    lane_.part = part;
    lane_.polls.first = static_cast<std::uint32_t>(trace.polls.size());
    lane_.parks.first = static_cast<std::uint32_t>(trace.parks.size());
  }

  void add(const PollSlice& slice) {
    Polls& polls = trace_.polls;
    polls.start_ns.push_back(slice.start_ns);
    polls.end_ns.push_back(slice.end_ns);
    polls.ready_ns.push_back(kUnknownNs);
    polls.lane.push_back(index_);
    polls.task.push_back(slice.task);
    polls.spawn_loc.push_back(slice.spawn_loc);
    polls.wake.push_back(kNoIndex);
    polls.ready_source.push_back(ReadySource::kNoTask);
    polls.flags.push_back(slice.flags);
    polls.local_queue.push_back(slice.local_queue);
    lane_.busy_ns += slice.end_ns - slice.start_ns;
  }

  void add(const ParkSlice& slice) {
    Parks& parks = trace_.parks;
    parks.start_ns.push_back(slice.start_ns);
    parks.end_ns.push_back(slice.end_ns);
    parks.kernel_wait_ns.push_back(slice.kernel_wait_ns);
    parks.cpu_start_ns.push_back(slice.cpu_start_ns);
    parks.cpu_end_ns.push_back(slice.cpu_end_ns);
    parks.lane.push_back(index_);
    parks.tid.push_back(slice.tid);
    parks.flags.push_back(slice.flags);
    lane_.parked_ns += slice.end_ns - slice.start_ns;
    lane_.tid = slice.tid != 0 ? slice.tid : lane_.tid;
  }

  void finish() {
    lane_.polls.last = static_cast<std::uint32_t>(trace_.polls.size());
    lane_.parks.last = static_cast<std::uint32_t>(trace_.parks.size());
    trace_.lanes.push_back(lane_);
  }

 private:
  Trace& trace_;
  std::uint32_t index_;
  Lane lane_;
};

void add_shared_lanes(Trace& trace, std::uint32_t worker, const Slices& slices) {
  trace.unmatched_poll_ends += slices.unmatched_ends;
  const std::vector<std::vector<PollSlice>> polls = pack(slices.polls);
  const std::vector<std::vector<ParkSlice>> parks = pack(slices.parks);
  const std::size_t parts = std::max({polls.size(), parks.size(), std::size_t{1}});
  for (std::size_t part = 0; part < parts; ++part) {
    LaneWriter writer(trace, worker, static_cast<std::uint32_t>(part));
    if (part < polls.size()) {
      for (const PollSlice& slice : polls[part]) {
        writer.add(slice);
      }
    }
    if (part < parks.size()) {
      for (const ParkSlice& slice : parks[part]) {
        writer.add(slice);
      }
    }
    writer.finish();
  }
}

}  // namespace

void Loader::Impl::build_lanes() {
  for (auto& [id, raw] : workers_) {
    const auto worker_id = static_cast<std::uint32_t>(id);
    const bool is_shared = id == kUnknownWorker || id == kBlockingWorker;
    std::vector<RawPoll> polls = take_sorted(raw.polls, raw.has_poll_disorder);
    std::vector<RawPark> parks = take_sorted(raw.parks, raw.has_park_disorder);
    if (is_shared) {
      add_shared_lanes(trace_, worker_id,
                       pair_shared(std::move(polls), std::move(parks), trace_.end_ns));
      continue;
    }
    Slices slices;
    Pairing(slices, trace_.end_ns).run(polls, parks);
    polls = {};
    trace_.unmatched_poll_ends += slices.unmatched_ends;
    LaneWriter writer(trace_, worker_id, 0);
    for (const PollSlice& slice : slices.polls) {
      writer.add(slice);
    }
    for (const ParkSlice& slice : slices.parks) {
      writer.add(slice);
    }
    writer.finish();
  }
  workers_.clear();
  if (!aliases_.empty()) {
    for (std::size_t i = 0; i < trace_.polls.size(); ++i) {
      trace_.polls.spawn_loc[i] = settled(trace_.polls.spawn_loc[i]);
    }
  }
}

}  // namespace dial9::analysis
