// Segments from streams: see segment_writer.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/segment_writer.h"

#include <algorithm>
#include <string_view>

#include "format/encoder.h"
#include "recorder/loss_events.h"
#include "recorder/recording_state.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kStageBytes = 128 << 10;
constexpr std::uint64_t kRetryNs = 1'000'000'000;
// Writes that work for this long after a failure: the trouble is over.
constexpr std::uint64_t kSettledNs = 10'000'000'000;
// The stream that closes a segment: metadata again, and the mark that it ended well. A segment
// leaves room for it.
constexpr std::uint64_t kSealReserveBytes = 4 << 10;

enum TypeId : std::uint16_t { kClockSync = 1, kMetadata = 2 };

void add(StreamInfo& sum, const StreamInfo& info) {
  if (info.events == 0) return;
  sum.first_ns = sum.events == 0 ? info.first_ns : std::min(sum.first_ns, info.first_ns);
  sum.last_ns = std::max(sum.last_ns, info.last_ns);
  sum.events += info.events;
}

}  // namespace

SegmentWriter::SegmentWriter(SegmentStore& store, Arena& arena, SegmentWriterOptions options)
    : store_(store), arena_(arena), journal_(arena.journal()), options_(std::move(options)) {
  staged_.reserve(kStageBytes + kChunkBytes);
  journal_.remember_prologue(prologue(kernel_now_ns(), false));
}

std::vector<std::uint8_t> SegmentWriter::prologue(std::uint64_t now_ns, bool is_sealing) const {
  format::Encoder out;
  using format::FieldType;
  out.schema(kClockSync, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}});
  out.schema(kMetadata, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}});
  // The realtime of the moment halfway between two readings of the monotonic clock.
  const std::uint64_t before = kernel_now_ns();
  const std::uint64_t realtime = options_.realtime_ns();
  const std::uint64_t after = kernel_now_ns();
  out.begin(kClockSync, before + (after - before) / 2);
  out.varint(realtime);
  Metadata entries = options_.metadata();
  const std::uint64_t index = is_open_ ? next_index_ - 1 : next_index_;
  entries.emplace_back("segment.index", std::to_string(index));
  if (is_sealing) entries.emplace_back("segment.sealed_clean", "true");
  std::vector<std::pair<std::string_view, std::string_view>> views(entries.begin(), entries.end());
  out.begin(kMetadata, now_ns);
  out.string_map(views);
  return out.take();
}

void SegmentWriter::fail(const Error& error, std::uint64_t now_ns) {
  // On a full disk writes fail and work by turns: that is one trouble, not many.
  const bool is_new = !is_trouble_told_;
  is_trouble_told_ = true;
  failure_ = error.message;
  retry_ns_ = now_ns + kRetryNs;
  if (is_new) {
    options_.message(error.message + "; events are dropped and counted until it works again");
  }
}

bool SegmentWriter::open_segment(std::uint64_t now_ns) {
  if (is_open_) return true;
  if (!failure_.empty() && now_ns < retry_ns_) return false;
  if (unstaged_ != 0) lose_staged();
  // First of all: a file that is there has its place in the journal.
  journal_.begin_segment(next_index_, journal_.confirmed());
  auto opened = store_.open(next_index_, options_.segment_bytes);
  std::vector<std::uint8_t> first = prologue(now_ns, false);
  journal_.remember_prologue(first);
  if (opening_) {
    const std::vector<std::uint8_t> more = opening_();
    first.insert(first.end(), more.begin(), more.end());
  }
  if (opened) opened = store_.append(first);
  if (!opened) {
    store_.abandon();
    // Nothing is in it, whatever is confirmed until the next attempt: that is counted as lost.
    journal_.end_segment(next_index_, journal_.confirmed());
    fail(opened.error(), now_ns);
    return false;
  }
  if (!failure_.empty()) works_since_ns_ = now_ns;
  failure_.clear();
  is_open_ = true;
  ++next_index_;
  opened_ns_ = now_ns;
  active_bytes_ = first.size();
  active_info_ = {};
  totals_.bytes += first.size();
  active_losses_ = {};
  settle(journal_.confirmed() + first.size());
  return true;
}

void SegmentWriter::stage(std::span<const std::uint8_t> bytes) {
  staged_.insert(staged_.end(), bytes.begin(), bytes.end());
}

void SegmentWriter::settle(std::uint64_t position) {
  journal_.confirm(position);
  journal_.settle_told();
  if (on_settled_) on_settled_();
}

// The collector alone counts in stripe 0 under these causes, so that the journal can say what the
// counter is going to be.
void SegmentWriter::count_own_loss(LossCause cause, const StreamInfo& info,
                                   std::uint64_t position) {
  journal_.begin_loss(cause, arena_.loss_in_first_stripe(cause) + info.events, position);
  journal_.confirm(position);
  arena_.count_loss(cause, info.events, 0, info.first_ns, info.last_ns);
  journal_.end_loss();
}

void SegmentWriter::lose_staged() {
  const std::uint64_t end = staged_end();
  if (end == journal_.confirmed()) return;
  // The segment ends before them; then their reports are untold; then they are gone, and counted.
  if (is_open_) journal_.end_segment(next_index_ - 1, journal_.confirmed());
  untell(staged_losses_);
  if (staged_info_.events != 0) count_own_loss(LossCause::kWriteFailed, staged_info_, end);
  staged_.clear();
  staged_info_ = {};
  unstaged_ = 0;
  settle(end);
}

void SegmentWriter::merge(ToldLosses& into, ToldLosses& from) {
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    if (from[i].count == 0) continue;
    into[i].first_ns =
        into[i].count == 0 ? from[i].first_ns : std::min(into[i].first_ns, from[i].first_ns);
    into[i].last_ns = std::max(into[i].last_ns, from[i].last_ns);
    into[i].count += from[i].count;
  }
  from = {};
}

void SegmentWriter::untell(ToldLosses& told) {
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    if (told[i].count == 0) continue;
    reported_[i] -= told[i].count;
    // The count is in the arena still; its time range was taken out with the report.
    arena_.count_loss(static_cast<LossCause>(i), 0, 0, told[i].first_ns, told[i].last_ns);
    journal_.untell(static_cast<LossCause>(i), reported_[i]);
  }
  told = {};
}

std::uint64_t SegmentWriter::append(std::span<const std::uint8_t> prefix,
                                    std::span<const std::uint8_t> body, const StreamInfo& info,
                                    std::uint64_t now_ns) {
  const std::uint64_t bytes = prefix.size() + body.size();
  last_append_ = {};
  const std::uint64_t limit = options_.segment_bytes - kSealReserveBytes;
  if (is_open_ && active_bytes_ + staged_.size() + bytes > limit) seal(now_ns);
  const bool has_segment = open_segment(now_ns);
  if (has_segment && staged_.size() + bytes > kStageBytes) flush(now_ns);
  last_append_ = {staged_.size(), unstaged_, staged_info_, true};
  if (has_segment && is_open_) {
    stage(prefix);
    stage(body);
  } else {
    unstaged_ += bytes;
  }
  add(staged_info_, info);
  return staged_end();
}

void SegmentWriter::take_back() {
  if (!last_append_.is_there) return;
  staged_.resize(last_append_.staged_bytes);
  unstaged_ = last_append_.unstaged_bytes;
  staged_info_ = last_append_.info;
  last_append_ = {};
}

void SegmentWriter::flush(std::uint64_t now_ns) {
  if (staged_.empty() && unstaged_ == 0) return;
  if (!is_open_) return lose_staged();
  if (const auto written = store_.append(staged_); !written) {
    fail(written.error(), now_ns);
    lose_staged();
    // What the segment holds so far is whole: it ends here, and the next attempt makes a new one.
    if (active_info_.events != 0) {
      (void)store_.seal();  // where even the rename fails, the file keeps its .active name
      ++totals_.sealed;
    } else {
      store_.abandon();
    }
    is_open_ = false;
    return;
  }
  active_bytes_ += staged_.size();
  totals_.bytes += staged_.size();
  totals_.events += staged_info_.events;
  add(active_info_, staged_info_);
  merge(active_losses_, staged_losses_);
  const std::uint64_t end = staged_end();
  staged_.clear();
  staged_info_ = {};
  settle(end);
  if (is_trouble_told_ && now_ns >= works_since_ns_ + kSettledNs) {
    options_.message("writing segments again");
    is_trouble_told_ = false;
  }
}

void SegmentWriter::report_losses(std::uint64_t now_ns) {
  ToldLosses told{};
  std::uint64_t fresh[kLossCauses] = {};
  bool has_any = false;
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    fresh[i] = arena_.loss_total(static_cast<LossCause>(i)) - reported_[i];
    has_any |= fresh[i] != 0;
  }
  // Zeros may have taken the counters' place, in the middle of this too: lose_buffers() comes next.
  if (arena_.has_left_file() && !has_lost_buffers_) return;
  if (!has_any || !open_segment(now_ns)) return;
  format::Encoder out;  // it allocates, so not in each pass
  put_loss_schema(out);
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    if (fresh[i] == 0) continue;
    const auto cause = static_cast<LossCause>(i);
    std::uint64_t first = now_ns;
    std::uint64_t last = now_ns;
    if (!arena_.take_loss_range(cause, &first, &last)) first = last = now_ns;
    put_loss(out, last, loss_cause_name(cause), fresh[i], first, last);
    reported_[i] += fresh[i];
    told[i] = {fresh[i], first, last};
  }
  const std::uint64_t end = append({}, out.data(), {}, now_ns);
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    if (told[i].count == 0) continue;
    journal_.stage_told(static_cast<LossCause>(i), reported_[i], end, told[i].first_ns,
                        told[i].last_ns);
  }
  merge(staged_losses_, told);
}

void SegmentWriter::lose_buffers(std::uint64_t first_ns, std::uint64_t now_ns) {
  has_lost_buffers_ = true;
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    const auto cause = static_cast<LossCause>(i);
    std::uint64_t ignored = 0;
    if (reported_[i] == 0) continue;
    arena_.count_loss(cause, reported_[i], 0, now_ns, now_ns);
    arena_.take_loss_range(cause, &ignored, &ignored);
  }
  if (!open_segment(now_ns)) return;
  format::Encoder out;
  put_loss_schema(out);
  put_loss(out, now_ns, "buffers_cut", 0, first_ns, now_ns);  // of unknown size
  append({}, out.data(), {}, now_ns);
}

bool SegmentWriter::tell_off(std::uint64_t first_ns, std::uint64_t last_ns, std::uint64_t now_ns) {
  if (!is_open_) return false;
  format::Encoder out;
  put_loss_schema(out);
  put_loss(out, last_ns, kRecordingOff, 0, first_ns, last_ns);
  append({}, out.data(), {}, now_ns);
  flush(now_ns);
  return is_open_;
}

void SegmentWriter::append_own(std::span<const std::uint8_t> stream, std::uint64_t now_ns) {
  if (is_open_ && !stream.empty()) append({}, stream, {}, now_ns);
}

void SegmentWriter::write_metadata(std::uint64_t now_ns) {
  const std::vector<std::uint8_t> stream = prologue(now_ns, false);
  journal_.remember_prologue(stream);
  if (is_open_) append({}, stream, {}, now_ns);
}

bool SegmentWriter::is_due(std::uint64_t now_ns) const {
  return is_open_ && now_ns - opened_ns_ >= options_.rotation_ns;
}

bool SegmentWriter::seal(std::uint64_t now_ns) {
  if (!is_open_) return true;
  stage(prologue(now_ns, true));
  flush(now_ns);
  if (!is_open_) return false;
  check_intact(now_ns);
  if (!is_open_) return false;
  is_open_ = false;
  journal_.end_segment(next_index_ - 1, journal_.confirmed());
  const auto sealed = store_.seal();
  if (!sealed) {
    fail(sealed.error(), now_ns);
    return false;
  }
  ++totals_.sealed;
  return true;
}

void SegmentWriter::check_intact(std::uint64_t now_ns) {
  if (!is_open_ || store_.is_active_intact()) return;
  store_.abandon();
  lose_staged();
  is_open_ = false;
  --next_index_;  // its events are counted: a gap in the numbers would say that others are missing
  totals_.events -= active_info_.events;
  if (active_info_.events != 0) {
    count_own_loss(LossCause::kFileRemoved, active_info_, journal_.confirmed());
  }
  untell(active_losses_);
  fail(Error{ErrorCode::kNotFound, "the segment that was being written has been removed"}, now_ns);
  retry_ns_ = now_ns;  // the directory is made again at once
}

}  // namespace dial9::internal
