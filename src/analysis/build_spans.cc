// Joins enters, exits and closes to spans, finds parents and tasks, and packs spans into rows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "analysis/loader_impl.h"
#include "analysis/packing.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kMaxRanges = 3;  // of fields: enter's, exit's, close's

struct Joined {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t active_ns = kUnknownNs;
  std::uint64_t id = 0;
  std::uint64_t task_id = 0;
  std::uint64_t entered_ns = kUnknownNs;  // of the piece that runs now (older dialect)
  std::uint64_t last_exit_ns = kUnknownNs;
  std::uint32_t parent = kNoIndex;  // index of Joined
  std::uint32_t worker = kUnknownWorker;
  std::uint32_t poll_count = 0;
  NameId name = kNoName;
  Range fields[kMaxRanges];
  std::uint8_t ranges = 0;
  std::uint8_t flags = 0;

  void add_fields(Range range) {
    if (!range.empty() && ranges < kMaxRanges) {
      fields[ranges++] = range;
    }
  }
};

class Joiner {
 public:
  explicit Joiner(std::vector<Joined>& out) : out_(out) {}

  void take(const RawSpan& raw) {
    switch (raw.kind) {
      case RawSpanKind::kEnter:
        on_enter(raw);
        return;
      case RawSpanKind::kFinalExit:
        on_final_exit(raw);
        return;
      case RawSpanKind::kExit:
        on_exit(raw);
        return;
      case RawSpanKind::kClose:
        on_close(raw);
        return;
      case RawSpanKind::kWhole:
        on_whole(raw);
        return;
    }
  }

  // What is still open ends with the trace; unless its writer never closes spans, then with its
  // last exit.
  void finish(std::uint64_t trace_end_ns, bool has_closes) {
    for (const auto& [id, index] : open_) {
      Joined& span = out_[index];
      const bool is_suspended = span.entered_ns == kUnknownNs && span.last_exit_ns != kUnknownNs;
      if (is_suspended && !has_closes) {
        span.end_ns = span.last_exit_ns;
        span.flags |= kSpanEndInferred;
      } else {
        span.end_ns = std::max(trace_end_ns, span.start_ns);
        span.flags |= kSpanOpen;
      }
    }
  }

 private:
  Joined& create(const RawSpan& raw, std::uint64_t start_ns) {
    Joined span;
    span.start_ns = std::min(start_ns, raw.at_ns);
    span.end_ns = raw.at_ns;
    span.id = raw.id;
    span.name = raw.name;
    span.worker = raw.worker;
    span.task_id = raw.task_id;
    if (raw.has_parent) {
      const auto parent = open_.find(raw.parent);
      span.parent = parent == open_.end() ? kNoIndex : parent->second;
    }
    out_.push_back(span);
    return out_.back();
  }

  Joined* find(std::uint64_t id) {
    const auto found = open_.find(id);
    return found == open_.end() ? nullptr : &out_[found->second];
  }

  void on_enter(const RawSpan& raw) {
    if (Joined* again = find(raw.id); again != nullptr) {
      again->entered_ns = raw.at_ns;
      return;
    }
    Joined& span = create(raw, raw.start_ns == kUnknownNs ? raw.at_ns : raw.start_ns);
    span.entered_ns = raw.at_ns;
    span.add_fields(raw.fields);
    open_[raw.id] = static_cast<std::uint32_t>(out_.size() - 1);
  }

  void on_final_exit(const RawSpan& raw) {
    Joined* span = find(raw.id);
    if (span == nullptr) {
      // Active and idle time together are its length, so the start is known.
      const bool is_known = raw.active_ns != kUnknownNs && raw.idle_ns != kUnknownNs &&
                            raw.idle_ns <= raw.at_ns && raw.active_ns <= raw.at_ns - raw.idle_ns;
      span = &create(raw, is_known ? raw.at_ns - raw.active_ns - raw.idle_ns : raw.at_ns);
      span->flags |= kSpanStartLost;
    }
    span->end_ns = raw.at_ns;
    span->active_ns = raw.active_ns;
    span->poll_count = raw.poll_count;
    if (!raw.is_completed) {
      span->flags |= kSpanCancelled;
    }
    span->add_fields(raw.fields);
    open_.erase(raw.id);
  }

  void on_exit(const RawSpan& raw) {
    Joined* span = find(raw.id);
    if (span == nullptr || span->entered_ns == kUnknownNs) {
      return;  // the enter lies before the trace
    }
    span->active_ns =
        (span->active_ns == kUnknownNs ? 0 : span->active_ns) + raw.at_ns - span->entered_ns;
    ++span->poll_count;
    span->entered_ns = kUnknownNs;
    span->last_exit_ns = raw.at_ns;
  }

  void on_close(const RawSpan& raw) {
    Joined* span = find(raw.id);
    if (span == nullptr) {
      if (raw.start_ns == kUnknownNs) {
        return;  // nothing is known of it but its end
      }
      span = &create(raw, raw.start_ns);
    }
    span->end_ns = raw.at_ns;
    span->active_ns = raw.active_ns != kUnknownNs ? raw.active_ns : span->active_ns;
    span->add_fields(raw.fields);
    open_.erase(raw.id);
  }

  void on_whole(const RawSpan& raw) {
    const bool is_known = raw.start_ns <= raw.at_ns;
    Joined& span = create(raw, is_known ? raw.start_ns : raw.at_ns);
    span.flags |= is_known ? std::uint8_t{0} : kSpanStartLost;
    span.add_fields(raw.fields);
  }

  std::vector<Joined>& out_;
  std::unordered_map<std::uint64_t, std::uint32_t> open_;  // by id
};

}  // namespace

void Loader::Impl::build_spans() {
  std::vector<std::uint32_t> order(spans_.size());
  std::iota(order.begin(), order.end(), 0U);
  dial9::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return spans_[a].at_ns < spans_[b].at_ns;
  });
  std::vector<Joined> joined;
  Joiner joiner(joined);
  for (const std::uint32_t i : order) {
    joiner.take(spans_[i]);
  }
  joiner.finish(trace_.end_ns, has_span_closes_);
  spans_.clear();

  order.resize(joined.size());
  std::iota(order.begin(), order.end(), 0U);
  dial9::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return joined[a].start_ns < joined[b].start_ns;
  });
  std::vector<std::uint32_t> index_of(joined.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    index_of[order[i]] = i;
  }
  Spans& spans = trace_.spans;
  RowPacker packer;
  for (const std::uint32_t i : order) {
    const Joined& span = joined[i];
    const auto first = static_cast<std::uint32_t>(trace_.span_fields.size());
    for (std::uint8_t r = 0; r < span.ranges; ++r) {
      for (std::uint32_t f = span.fields[r].first; f < span.fields[r].last; ++f) {
        trace_.span_fields.push_back(span_cells_[f]);
      }
    }
    std::uint32_t task = kNoIndex;
    if (const auto named = trace_.task_by_id.find(span.task_id); named != trace_.task_by_id.end()) {
      task = named->second;
    } else if (const std::uint32_t lane = trace_.lane_of_worker(span.worker);
               lane != kNoIndex && span.worker != kUnknownWorker &&
               span.worker != kBlockingWorker) {
      const std::uint32_t poll = trace_.poll_at(lane, span.start_ns);
      task = poll == kNoIndex ? kNoIndex : trace_.polls.task[poll];
    }
    spans.start_ns.push_back(span.start_ns);
    spans.end_ns.push_back(span.end_ns);
    spans.active_ns.push_back(span.active_ns);
    spans.id.push_back(span.id);
    spans.parent.push_back(span.parent == kNoIndex ? kNoIndex : index_of[span.parent]);
    spans.name.push_back(settled(span.name));
    spans.worker.push_back(span.worker);
    spans.task.push_back(task);
    spans.poll_count.push_back(span.poll_count);
    spans.fields.push_back({first, static_cast<std::uint32_t>(trace_.span_fields.size())});
    spans.row.push_back(packer.place(span.start_ns, span.end_ns));
    spans.flags.push_back(span.flags);
  }
  trace_.span_rows = packer.rows();
  span_cells_.clear();
}

}  // namespace dial9::analysis
