// See label_teller.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/label_teller.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "recorder/fork_child.h"
#include "recorder/label_changes.h"
#include "recorder/labels.h"
#include "recorder/recording_state.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kTellNs = 1'000'000'000;
constexpr std::uint64_t kMostListGapNs = 64 * kTellNs;

enum TypeId : std::uint16_t { kChange = 1, kCoverage = 2 };

void add_schema(format::Encoder& out, std::uint16_t type) {
  using format::FieldType;
  if (type == kChange) {
    return out.schema(kChange, LabelChangeEvent::dial9_name(), true,
                      {{"tid", FieldType::kU32},
                       {"task_id", FieldType::kVarint},
                       {"known", FieldType::kBool},
                       {"label_name", FieldType::kPooledString, true},
                       {"label_value", FieldType::kPooledString, true}});
  }
  out.schema(kCoverage, "LabelCoverageEvent", true,
             {{"since_ns", FieldType::kVarint},
              {"until_ns", FieldType::kVarint},
              {"lists_tasks", FieldType::kBool},
              {"lists_threads", FieldType::kBool},
              {"listed_ns", FieldType::kVarint}});
  out.annotations(kCoverage, {{0, "unit", "ns"}, {1, "unit", "ns"}, {4, "unit", "ns"}});
}

bool collect(void* self, const OpenLabel& open) {
  auto& labels = *static_cast<std::vector<OpenLabel>*>(self);
  if (labels.size() == LabelTeller::kMostListed) return false;
  labels.push_back(open);
  return true;
}

// Of a thread with several open ones, which one holds isn't known.
void fold_threads(std::vector<OpenLabel>& labels) {
  std::sort(labels.begin(), labels.end(),
            [](const OpenLabel& a, const OpenLabel& b) { return a.tid < b.tid; });
  std::size_t kept = 0;
  for (const OpenLabel& open : labels) {
    if (kept != 0 && labels[kept - 1].tid == open.tid) {
      labels[kept - 1].is_known = false;
    } else {
      labels[kept++] = open;
    }
  }
  labels.resize(kept);
}

void add_changes(SampleStreams& streams, const std::vector<OpenLabel>& labels,
                 std::uint64_t at_ns) {
  for (const OpenLabel& open : labels) {
    format::Encoder& out = streams.begin(kChange, at_ns);
    out.u32(open.tid);
    out.varint(open.task);
    out.boolean(open.is_known);
    put_text(out, open.is_known ? open.label.name() : std::string_view());
    put_text(out, open.is_known ? open.label.value() : std::string_view(), open.is_known);
  }
}

}  // namespace

LabelTeller::LabelTeller(std::uint64_t (*now_ns)() noexcept)
    : now_ns_(now_ns),
      streams_(std::make_unique<SampleStreams>(add_schema)),
      process_(process_number()) {
  begin_anew();
}

std::uint64_t LabelTeller::attend(std::uint64_t now_ns) {
  const std::uint32_t process = process_number();
  if (process_ != process) {
    const bool is_forked = process_ != 0;  // else nothing was recorded yet
    is_child_ = is_child_ || is_forked;
    if (is_forked) (void)streams_.release();  // the parent's: it may have been in there
    streams_ = std::make_unique<SampleStreams>(add_schema);
  }
  if (process_ != process || is_resting_ || is_over()) begin_anew();
  process_ = process;
  is_resting_ = false;
  const LabelWatch watch = label_watch();
  if (!watch.is_on || watch.number != watch_number_) return kNever;
  const std::uint64_t now = now_ns_();
  if (asked_ns_ == 0) asked_ns_ = now;
  if (since_ns_ == 0 && now >= asked_ns_ + kGraceNs) since_ns_ = now;
  return since_ns_ == 0 ? now_ns + kGraceNs : kNever;
}

bool LabelTeller::is_telling() const { return since_ns_ != 0 && process_ == process_number(); }

// Up to when every change was told since all this began: kNever where the last watcher hasn't left,
// 0 where others have come and left since. What a thread was about to do as he left isn't told.
std::uint64_t LabelTeller::watched_until() const {
  if (label_watch().number == watch_number_) return kNever;
  const std::uint64_t at_ns = labels_unwatched_ns(watch_number_);
  return at_ns - std::min(at_ns, kGraceNs);
}

// The last watcher has left, and what was told until then is told of, or another one waits.
bool LabelTeller::is_over() const {
  const std::uint64_t until_ns = watched_until();
  if (until_ns == kNever) return false;
  return since_ns_ == 0 || until_ns <= std::max(since_ns_, told_until_ns_) || !has_labels() ||
         are_labels_watched();
}

void LabelTeller::begin_anew() {
  watch_number_ = label_watch().number;
  asked_ns_ = since_ns_ = until_ns_ = told_until_ns_ = 0;
  next_list_ns_ = 0;
  list_gap_ns_ = kTellNs;
  has_listed_ = is_due_ = false;
}

// What was told until then is told of to its end.
void LabelTeller::rest() { is_resting_ = true; }

bool LabelTeller::drained(std::uint64_t before_ns, bool is_all) {
  const std::uint64_t most_ns = watched_until();
  const std::uint64_t until_ns = std::min(before_ns, most_ns);
  if (!is_telling() || until_ns < since_ns_) return false;
  until_ns_ = std::max(until_ns_, until_ns);
  is_due_ = is_all || until_ns == most_ns;
  return true;
}

std::vector<SourceStream> LabelTeller::take() {
  if (!is_telling()) return {};
  const bool has_news = has_labels() && until_ns_ > told_until_ns_;
  const bool is_due = has_news && (is_due_ || until_ns_ >= told_until_ns_ + kTellNs);
  const bool lists = !has_listed_ && now_ns_() >= next_list_ns_ && watched_until() == kNever;
  if (!is_due && !lists) return {};
  tell(*streams_, lists);
  std::vector<SourceStream> streams = streams_->take();
  for (SourceStream& stream : streams) stream.info.events = 0;  // the recorder's own, as opening()
  return streams;
}

std::vector<std::uint8_t> LabelTeller::opening() {
  std::vector<std::uint8_t> bytes;
  if (!is_telling()) return bytes;
  SampleStreams own(add_schema);
  tell(own, watched_until() == kNever);
  for (const SourceStream& stream : own.take()) {
    bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
  }
  return bytes;
}

// The stamp is taken before labels are looked at: whoever changes one meanwhile tells it later.
void LabelTeller::tell(SampleStreams& streams, bool lists) {
  const std::uint64_t at_ns = now_ns_();
  const bool is_empty = !has_labels();
  std::vector<OpenLabel> tasks;
  std::vector<OpenLabel> threads;
  const bool has_tasks = lists && (is_empty || list_task_labels(collect, &tasks));
  const bool has_threads = lists && (is_empty || list_thread_labels(collect, &threads)) &&
                           (!is_child_ || threads.empty());
  const std::uint64_t listed_ns = now_ns_();
  if (has_tasks) add_changes(streams, tasks, at_ns);
  if (has_threads) {
    fold_threads(threads);
    add_changes(streams, threads, at_ns);
  }
  format::Encoder& out = streams.begin(kCoverage, at_ns);
  out.varint(since_ns_);
  told_until_ns_ = std::max(since_ns_, until_ns_);
  out.varint(told_until_ns_);
  out.boolean(has_tasks);
  out.boolean(has_threads);
  out.varint(listed_ns);
  is_due_ = false;
  has_listed_ = has_listed_ || (has_tasks && has_threads);
  if (!lists) return;
  next_list_ns_ = at_ns + list_gap_ns_;
  list_gap_ns_ = std::min(2 * list_gap_ns_, kMostListGapNs);
}

bool require_label_teller() noexcept {
  // Acquire and release: the teller is whole before another thread finds it added.
  static std::atomic<int> added{0};  // 1: by somebody just now; 2: it is
  int none = 0;
  if (!added.compare_exchange_strong(none, 1, std::memory_order_acquire)) return true;
  try {
    static LabelTeller* const teller = new LabelTeller(now_ns);
    if (add_stream_source(teller)) {
      added.store(2, std::memory_order_release);
      return true;
    }
  } catch (const std::bad_alloc&) {
    // The next who asks tries again.
  }
  added.store(0, std::memory_order_release);
  return false;
}

}  // namespace dial9::internal
