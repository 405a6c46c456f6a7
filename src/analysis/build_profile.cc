// Puts samples and waits on the lane of the worker whose thread they are of, samples of others on
// a row of their own, and dumps in the life of their task. A thread that several workers had is
// told apart by what the nearest park says, and where it never parks by the accounts of it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "analysis/counts.h"
#include "analysis/lane_of_account.h"
#include "analysis/loader_impl.h"
#include "analysis/moment_labels.h"
#include "analysis/moment_owners.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

// Which lane a thread worked on at a moment: the lane of its nearest parks, if that lane's parks
// around the moment are the thread's; of lanes that never park, what LaneOfAccount says. O(log
// parks) a question, however often a thread id was used.
class LaneOfThread {
 public:
  explicit LaneOfThread(const Trace& trace) : trace_(trace), accounts_(trace) {
    const Parks& parks = trace.parks;
    for (std::uint32_t park = 0; park < parks.size(); ++park) {
      if (parks.tid[park] != 0) {
        by_tid_.push_back(park);
      }
    }
    dial9::stable_sort(by_tid_.begin(), by_tid_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return parks.tid[a] != parks.tid[b] ? parks.tid[a] < parks.tid[b]
                                          : parks.start_ns[a] < parks.start_ns[b];
    });
  }

  // kNoIndex: on none, or it can't be told on which.
  std::uint32_t at(std::uint32_t tid, std::uint64_t at_ns) const {
    const std::uint32_t by_parks = by_parks_at(tid, at_ns);
    const std::uint32_t by_accounts = accounts_.at(tid, at_ns);
    if (by_parks == kNoIndex || by_accounts == kNoIndex) {
      return by_parks == kNoIndex ? by_accounts : by_parks;
    }
    // A worker of two runtimes, one of which never parks it.
    if (trace_.poll_at(by_accounts, at_ns) == kNoIndex) {
      return by_parks;
    }
    return trace_.poll_at(by_parks, at_ns) == kNoIndex ? by_accounts : kNoIndex;
  }

 private:
  std::uint32_t by_parks_at(std::uint32_t tid, std::uint64_t at_ns) const {
    const Parks& parks = trace_.parks;
    const auto after = std::partition_point(by_tid_.begin(), by_tid_.end(), [&](auto park) {
      return parks.tid[park] != tid ? parks.tid[park] < tid : parks.start_ns[park] <= at_ns;
    });
    const bool has_before = after != by_tid_.begin() && parks.tid[*std::prev(after)] == tid;
    const bool has_after = after != by_tid_.end() && parks.tid[*after] == tid;
    const std::uint32_t before = has_before ? lane_at(*std::prev(after), tid, at_ns) : kNoIndex;
    const std::uint32_t next = has_after ? lane_at(*after, tid, at_ns) : kNoIndex;
    if (before == kNoIndex || next == kNoIndex || before == next) {
      return before == kNoIndex ? next : before;
    }
    // The thread's id was used again meanwhile, or it went from one worker to another.
    const bool is_busy_before = trace_.poll_at(before, at_ns) != kNoIndex;
    const bool is_busy_next = trace_.poll_at(next, at_ns) != kNoIndex;
    if (is_busy_before != is_busy_next) {
      return is_busy_before ? before : next;
    }
    return at_ns < parks.end_ns[*std::prev(after)] ? before : kNoIndex;
  }

  std::uint32_t lane_at(std::uint32_t park, std::uint32_t tid, std::uint64_t at_ns) const {
    const std::uint32_t lane = trace_.parks.lane[park];
    return is_of(lane, tid, at_ns) ? lane : kNoIndex;
  }

  // The parks around the moment are of this thread.
  bool is_of(std::uint32_t lane, std::uint32_t tid, std::uint64_t at_ns) const {
    const Parks& parks = trace_.parks;
    const Range range = trace_.lanes[lane].parks;
    std::uint32_t low = range.first;
    std::uint32_t high = range.last;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (parks.start_ns[middle] <= at_ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool is_before = low == range.first || parks.tid[low - 1] == tid;
    const bool is_after = low == range.last || parks.tid[low] == tid;
    return is_before && is_after;
  }

  const Trace& trace_;
  const LaneOfAccount accounts_;
  std::vector<std::uint32_t> by_tid_;  // parks, by (thread, start)
};

// Puts the owner of the poll that a row lies in where its writer couldn't tell one.
template <class Row>
bool join_owner(const MomentOwners& owners, Row& row, std::uint32_t lane, std::uint64_t from_ns,
                std::uint64_t to_ns) {
  if (row.task_id != kUnknownId || row.span_id != kUnknownId) {
    return false;
  }
  const Owner owner = owners.of(lane, row.tid, from_ns, to_ns);
  row.task_id = owner.task_id;
  row.span_id = owner.span_id;
  return owner.task_id != kUnknownId;
}

// And the label that this, or the thread, had.
template <class Row>
void join_label(const MomentLabels& labels, Row& row, std::uint32_t lane, std::uint64_t from_ns,
                std::uint64_t to_ns) {
  if (row.is_label_known) {
    return;
  }
  const Owner owner{.task_id = row.task_id, .span_id = row.span_id};
  const MomentLabel label = labels.of(owner, lane, row.tid, from_ns, to_ns);
  row.is_label_known = label.is_known;
  row.label_name = label.name;
  row.label_value = label.value;
}

// Waits off the CPU, their connections, and threads' times.
template <class Settled>
void place_waits(Trace& trace, const LaneOfThread& lanes, const MomentOwners& owners,
                 const MomentLabels& labels, Settled settled) {
  for (std::size_t i = 0; i < trace.off_cpu.size(); ++i) {
    OffCpuWait& wait = trace.off_cpu[i];
    wait.lane = lanes.at(wait.tid, wait.at_ns);
    for (NameId* name :
         {&wait.thread_name, &wait.label_name, &wait.label_value, &wait.call, &wait.cause}) {
      *name = settled(*name);
    }
    // Of one that no look saw the worker itself says that it had parked.
    if (wait.is_exact && wait.call == kNoName && !wait.is_parked && wait.lane != kNoIndex) {
      wait.is_parked = trace.park_at(wait.lane, wait.at_ns) != kNoIndex;
    }
    const std::uint64_t end_ns = sum_of(wait.at_ns, sum_of(wait.proven_ns, wait.runnable_ns));
    wait.is_owner_joined = join_owner(owners, wait, wait.lane, wait.at_ns, end_ns);
    join_label(labels, wait, wait.lane, wait.at_ns, end_ns);
  }
  for (std::size_t i = 0; i < trace.socket_waits.size(); ++i) {
    SocketWait& wait = trace.socket_waits[i];
    wait.lane = lanes.at(wait.tid, wait.at_ns);
    wait.thread_name = settled(wait.thread_name);
    const std::uint64_t begin_ns = wait.at_ns - std::min(wait.at_ns, wait.waited_ns);
    join_owner(owners, wait, wait.lane, begin_ns, wait.at_ns);
  }
  for (std::size_t i = 0; i < trace.thread_times.size(); ++i) {
    ThreadTime& time = trace.thread_times[i];
    time.lane = lanes.at(time.tid, time.at_ns);
    time.thread_name = settled(time.thread_name);
  }
}

}  // namespace

void Loader::Impl::build_profile() {
  if (!aliases_.empty()) {
    for (Symbol& symbol : trace_.symbols.rows()) {
      symbol.name = readable(settled(symbol.name));
      symbol.file = settled(symbol.file);
    }
  }
  trace_.symbols.sort();
  trace_.modules.sort();
  const bool has_any = !samples_.empty() || !trace_.off_cpu.empty() ||
                       !trace_.socket_waits.empty() || !trace_.thread_times.empty();
  if (has_any) {
    place_samples();
  }
  std::vector<std::uint32_t> order(dumps_.size());
  std::iota(order.begin(), order.end(), 0U);
  dial9::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return dumps_[a].task != dumps_[b].task ? dumps_[a].task < dumps_[b].task
                                            : dumps_[a].at_ns < dumps_[b].at_ns;
  });
  for (const std::uint32_t i : order) {
    trace_.dumps.push_back(dumps_[i]);
  }
  dumps_.clear();
  stack_by_hash_.clear();
}

void Loader::Impl::place_samples() {
  const LaneOfThread lanes(trace_);
  const MomentOwners owners(trace_);
  for (LabelChange& change : label_changes_) {
    change.name = settled(change.name);
    change.value = settled(change.value);
  }
  const MomentLabels labels(trace_, owners, std::exchange(label_changes_, {}),
                            std::exchange(label_coverage_, {}));
  // (0, lane) or (1, thread): lanes come first.
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Key, std::vector<std::uint32_t>> rows;
  for (std::uint32_t i = 0; i < samples_.size(); ++i) {
    const std::uint32_t lane = lanes.at(samples_[i].tid, samples_[i].at_ns);
    rows[lane == kNoIndex ? Key{1, samples_[i].tid} : Key{0, lane}].push_back(i);
  }
  for (auto& [key, members] : rows) {
    dial9::stable_sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return samples_[a].at_ns < samples_[b].at_ns;
    });
    SampleRow row;
    row.lane = key.first == 0 ? key.second : kNoIndex;
    row.tid = key.first == 0 ? 0 : key.second;
    row.samples.first = static_cast<std::uint32_t>(trace_.samples.size());
    for (const std::uint32_t i : members) {
      CpuSample sample = samples_[i];
      for (NameId* name : {&sample.thread_name, &sample.label_name, &sample.label_value}) {
        *name = settled(*name);
      }
      sample.is_owner_joined = join_owner(owners, sample, row.lane, sample.at_ns, sample.at_ns);
      join_label(labels, sample, row.lane, sample.at_ns, sample.at_ns);
      row.thread_name = sample.thread_name == kNoName ? row.thread_name : sample.thread_name;
      trace_.samples.push_back(sample);
    }
    row.samples.last = static_cast<std::uint32_t>(trace_.samples.size());
    trace_.sample_rows.push_back(row);
    members = {};
  }
  samples_.clear();
  place_waits(trace_, lanes, owners, labels, [this](NameId name) { return settled(name); });
}

}  // namespace dial9::analysis
