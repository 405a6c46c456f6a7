// See arena_reader.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/arena_reader.h"

#include <algorithm>
#include <cstring>

#include "format/decoder.h"
#include "recorder/governor.h"
#include "recorder/recording_state.h"
#include "recorder/stream_scanner.h"

namespace dial9::internal {
namespace {

constexpr std::uint32_t kMaxChunks = 1 << 20;
constexpr std::uint32_t kMaxChunkBytes = 1 << 20;
constexpr std::uint32_t kMaxLossCauses = kLossCauses;

std::uint32_t bytes_of(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t count_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

std::unexpected<Error> corrupt(const std::string& what, std::uint64_t offset) {
  return make_error(
      ErrorCode::kCorrupt,
      "the thread buffers are damaged at byte " + std::to_string(offset) + ": " + what, offset);
}

class CountingVisitor : public format::Visitor {
 public:
  std::uint64_t last_ns = 0;
  bool on_event(const format::Event& event) override {
    last_ns = std::max(last_ns, event.timestamp_ns);
    return true;
  }
};

struct Decoded {
  std::uint64_t bytes;  // whole frames
  std::uint64_t events;
  std::string problem;  // empty: all of it was read
  std::uint64_t last_ns;
};

Decoded decode(std::span<const std::uint8_t> stream) {
  CountingVisitor visitor;
  format::Decoder decoder(visitor);
  auto outcome = decoder.feed(stream);
  if (outcome) outcome = decoder.finish();
  const format::DecodeStats stats = decoder.stats();
  return {stats.bytes_consumed, stats.events, outcome ? std::string() : outcome.error().message,
          visitor.last_ns};
}

std::uint64_t stripe_bytes(std::uint32_t causes) {
  const std::uint64_t bytes = sizeof(LossCounter) * std::uint64_t{causes};
  return (bytes + alignof(LossStripe) - 1) & ~std::uint64_t{alignof(LossStripe) - 1};
}

bool are_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

// False: the collector settled a batch in between. A read in the middle of that may have what was
// drained before, and no mark of what was staged any more: the batch would count twice.
bool is_same_drain(const ChunkCollectorLine& a, const ChunkCollectorLine& b) {
  return a.drained == b.drained && a.staged_to == b.staged_to &&
         a.staged_position == b.staged_position;
}

// What of the chunk is in no segment, as a stream of its own.
void take_rest(std::uint64_t drained, std::uint64_t committed, std::uint64_t offset,
               ChunkView* view) {
  const std::uint32_t bytes = bytes_of(drained);
  const std::uint32_t count = count_of(drained);
  view->events_in_segment = count;
  if (drained == committed) return;
  if (count == 0 && bytes == 0) {
    view->rest = view->stream;
    view->rest_events = view->events;
    return;
  }
  const std::span<const std::uint8_t> stream(view->stream);
  StreamScanner scanner;
  const bool is_followed =
      bytes >= format::kHeaderBytes && bytes <= stream.size() && count <= view->events &&
      scanner.scan(stream.subspan(format::kHeaderBytes, bytes - format::kHeaderBytes)) &&
      scanner.events() == count;
  if (is_followed) {
    view->rest = scanner.continuation();
    view->rest.insert(view->rest.end(), stream.begin() + bytes, stream.end());
    const Decoded decoded = decode(view->rest);
    if (decoded.problem.empty() && decoded.events == view->events - count) {
      view->rest_events = decoded.events;
      return;
    }
  }
  view->rest.clear();
  view->events_unreadable = count_of(committed) - std::min(count, count_of(committed));
  view->problem = corrupt("what was drained of a chunk doesn't end at an event", offset).error();
}

}  // namespace

Result<ArenaReader> ArenaReader::from(std::unique_ptr<ArenaBytes> bytes) {
  ArenaReader reader(std::move(bytes));
  if (auto checked = reader.check_header(); !checked) return std::unexpected(checked.error());
  return reader;
}

// What a process leaves that died while it made the arena: no magic, and nothing that only comes
// after that. The header's first fields are stored before anything else.
bool ArenaReader::is_blank(const ArenaHeader& header) const {
  if (header.version != 0) {
    std::vector<std::uint8_t> journal(sizeof(JournalPage));
    return bytes_->read(header.journal_offset, journal) && are_zero(journal);
  }
  std::vector<std::uint8_t> piece(1 << 20);
  for (std::uint64_t at = 0; at < bytes_->size(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), bytes_->size() - at));
    if (!bytes_->read(at, piece) || !are_zero(piece)) return false;
  }
  return true;
}

Result<void> ArenaReader::check_header() {
  ArenaHeader header{};
  if (!load(0, &header)) {
    if (bytes_->has_failed())
      return make_error(bytes_->failure(), "cannot read the thread buffers");
    return make_error(ErrorCode::kTruncated,
                      "the thread buffers end after " + std::to_string(bytes_->size()) +
                          " bytes, inside their header",
                      bytes_->size());
  }
  constexpr char kUnfinished[sizeof header.magic] = {};
  if (std::memcmp(header.magic, kUnfinished, sizeof kUnfinished) == 0) {
    if (!is_blank(header)) return corrupt("their header is gone", 0);
    return make_error(ErrorCode::kTruncated,
                      "the thread buffers were never finished: nothing was recorded into them", 0);
  }
  if (std::memcmp(header.magic, kArenaMagic, sizeof kArenaMagic) != 0) {
    return corrupt("this is no file of dial9's thread buffers", 0);
  }
  if (header.version != kArenaVersion) {
    return make_error(ErrorCode::kUnsupported,
                      "the thread buffers are of version " + std::to_string(header.version) +
                          ", this dial9 reads version " + std::to_string(kArenaVersion) +
                          ": use the dial9 of the program that wrote them",
                      offsetof(ArenaHeader, version));
  }
  if (header.chunk_bytes < 1024 || header.chunk_bytes > kMaxChunkBytes ||
      header.tables_bytes > header.chunk_bytes - 512) {
    return corrupt("a size of chunks that can't be", offsetof(ArenaHeader, chunk_bytes));
  }
  if (header.chunk_count == 0 || header.chunk_count > kMaxChunks) {
    return corrupt("a number of chunks that can't be", offsetof(ArenaHeader, chunk_count));
  }
  if (header.loss_causes > kMaxLossCauses) {
    return corrupt("a number of loss causes that can't be", offsetof(ArenaHeader, loss_causes));
  }
  const std::uint64_t controls = sizeof(ChunkControl) * std::uint64_t{header.chunk_count};
  const std::uint64_t chunks = std::uint64_t{header.chunk_bytes} * header.chunk_count;
  const std::uint64_t end = header.total_bytes;
  // Each region lies behind the one before, and the last ends where the file does.
  const bool is_laid_out =
      header.journal_offset >= sizeof header && end <= (std::uint64_t{1} << 42) &&
      header.loss_offset <= end && header.journal_offset <= end && header.control_offset <= end &&
      header.chunk_offset <= end && header.journal_offset + kJournalBytes <= header.loss_offset &&
      header.loss_offset + stripe_bytes(header.loss_causes) * kLossStripes <=
          header.control_offset &&
      header.control_offset + controls <= header.chunk_offset &&
      header.chunk_offset + chunks <= end;
  if (!is_laid_out) return corrupt("parts that overlap", offsetof(ArenaHeader, journal_offset));
  identity_.version = header.version;
  identity_.pid = header.pid;
  identity_.boot_id.assign(header.boot_id, strnlen(header.boot_id, sizeof header.boot_id));
  identity_.started_ns = header.started_ns;
  identity_.started_realtime_ns = header.started_realtime_ns;
  identity_.chunk_count = header.chunk_count;
  identity_.chunk_bytes = header.chunk_bytes;
  identity_.total_bytes = header.total_bytes;
  identity_.is_cut = bytes_->size() < header.total_bytes;
  tables_bytes_ = header.tables_bytes;
  loss_causes_ = header.loss_causes;
  journal_offset_ = header.journal_offset;
  loss_offset_ = header.loss_offset;
  control_offset_ = header.control_offset;
  chunk_offset_ = header.chunk_offset;
  return {};
}

namespace {

bool can_follow(const ShedRaise& raise, std::uint64_t since_ns, const ShedCounts& counts) {
  if (raise.at_ns < since_ns) return false;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    // Written so that what is no number fails, too.
    if (!(raise.keep_one_in[c] >= 1 && raise.keep_one_in[c] <= kKeepLimits.back())) return false;
    if (raise.counts.kept[c] < counts.kept[c] || raise.counts.shed[c] < counts.shed[c]) {
      return false;
    }
  }
  return true;
}

}  // namespace

ShedRaises ArenaReader::raises() const {
  ShedRaises raises;
  if (!load(offsetof(ArenaHeader, raises), &raises)) return {};
  const std::uint32_t told = std::min(raises.count, kMostRaises);
  std::uint64_t since_ns = raises.since_ns;
  const ShedCounts* counts = &raises.since_counts;
  for (raises.count = 0; raises.count < told; ++raises.count) {
    const ShedRaise& raise = raises.list[raises.count];
    if (!can_follow(raise, since_ns, *counts)) break;
    since_ns = raise.at_ns;
    counts = &raise.counts;
  }
  return raises;
}

std::uint32_t ArenaReader::free_chunks() const {
  std::uint32_t count = 0;
  if (!load(offsetof(ArenaHeader, free_count), &count)) return 0;
  return std::min(count, identity_.chunk_count);
}

ClockLine ArenaReader::clock() const {
  // The process changes it in place, four times a second: two equal looks are one good one.
  ClockLine line{0, 0, 0};
  for (int attempt = 0; attempt < 8; ++attempt) {
    ClockLine again{0, 0, 0};
    if (!load(offsetof(ArenaHeader, clock), &line) || !load(offsetof(ArenaHeader, clock), &again)) {
      return {0, 0, 0};
    }
    if (line.tsc_base == again.tsc_base && line.ns_base == again.ns_base &&
        line.mult == again.mult) {
      return line;
    }
  }
  return {0, 0, 0};
}

bool ArenaReader::load_journal(JournalPage* page) const { return load(journal_offset_, page); }

bool ArenaReader::load_control(std::uint32_t index, ChunkControl* control) const {
  return load(control_offset_ + sizeof(ChunkControl) * std::uint64_t{index}, control);
}

std::vector<ArenaLoss> ArenaReader::losses() const {
  std::vector<ArenaLoss> out;
  JournalPage journal{};
  if (!load_journal(&journal)) return out;
  for (std::uint32_t cause = 0; cause < loss_causes_; ++cause) {
    ArenaLoss loss;
    std::uint64_t of_stripe_0 = 0;
    for (std::uint32_t stripe = 0; stripe < kLossStripes; ++stripe) {
      LossCounter counter{};
      const std::uint64_t at = loss_offset_ + stripe_bytes(loss_causes_) * stripe;
      if (!load(at + sizeof counter * cause, &counter)) continue;
      if (stripe == 0) of_stripe_0 = counter.count;
      loss.count += counter.count;
      if (counter.first_ns == 0) continue;
      loss.first_ns =
          loss.first_ns == 0 ? counter.first_ns : std::min(loss.first_ns, counter.first_ns);
      loss.last_ns = std::max({loss.last_ns, counter.last_ns, counter.first_ns});
    }
    // A loss that its batch's end has made true, but that didn't reach the counter any more.
    if (journal.loss.position != 0 && journal.loss.cause == cause &&
        journal.loss.position <= journal.confirmed && journal.loss.target > of_stripe_0) {
      loss.count += journal.loss.target - of_stripe_0;
    }
    const JournalTold& told = journal.told[cause];
    loss.told = effective_drained(told.told, told.staged, told.staged_position, journal.confirmed);
    if (told.staged_position != 0 && told.staged_position > journal.confirmed) {
      loss.first_ns = loss.first_ns == 0 ? told.first_ns : std::min(loss.first_ns, told.first_ns);
      loss.last_ns = std::max(loss.last_ns, told.last_ns);
    }
    loss.cause = loss_cause_name(static_cast<LossCause>(cause));
    if (loss.count != 0) out.push_back(std::move(loss));
  }
  return out;
}

ArenaReader::Off ArenaReader::off_stretch() const {
  Off off;
  if (!load(offsetof(ArenaHeader, off_since_ns), &off.since_ns) ||
      !load(offsetof(ArenaHeader, off_until_ns), &off.until_ns)) {
    return {};
  }
  // Turned off again while it was read.
  if (off.until_ns < off.since_ns) off.until_ns = 0;
  return off;
}

std::uint64_t ArenaReader::stopped_ns() const {
  std::uint64_t at_ns = 0;
  return load(offsetof(ArenaHeader, stopped_ns), &at_ns) ? at_ns : 0;
}

std::optional<ArenaSegment> ArenaReader::segment(std::uint64_t index) const {
  JournalPage journal{};
  if (!load_journal(&journal)) return std::nullopt;
  const JournalSegment& entry = journal.segments[index % 2];
  if (entry.number != index + 1) return std::nullopt;
  const std::uint64_t end = std::min(entry.end, journal.confirmed);
  return ArenaSegment{index, end > entry.base ? end - entry.base : 0, entry.end != kOpenEnd};
}

std::optional<ArenaSegment> ArenaReader::active_segment() const {
  JournalPage journal{};
  if (!load_journal(&journal)) return std::nullopt;
  const std::uint64_t newest = std::max(journal.segments[0].number, journal.segments[1].number);
  return newest == 0 ? std::nullopt : segment(newest - 1);
}

std::vector<std::uint8_t> ArenaReader::prologue() const {
  JournalPage journal{};
  std::vector<std::uint8_t> bytes;
  // The one before, if a kill (or the process, right now) was in the middle of the newest.
  for (std::uint64_t back = 0; back < 2; ++back) {
    if (!load_journal(&journal) || journal.prologue <= back) return {};
    JournalPrologue slot{};
    const std::uint64_t at = journal_offset_ + 4096 + sizeof slot * ((journal.prologue - back) % 2);
    if (!load(at, &slot) || slot.size > sizeof slot.bytes) continue;
    bytes.assign(slot.bytes, slot.bytes + slot.size);
    const Decoded decoded = decode(bytes);
    if (check_bytes(bytes) == slot.check && decoded.problem.empty()) return bytes;
  }
  return {};
}

JournalRecovery ArenaReader::recovery() const {
  JournalPage journal{};
  return load_journal(&journal) ? journal.recovery : JournalRecovery{kNotRecovered, 0};
}

bool ArenaReader::has_journal() const {
  JournalPage journal{};
  return load_journal(&journal) && journal.prologue != 0;
}

bool ArenaReader::has_lost_chunks() const {
  // A chunk that was never used has the number of the next free one, which isn't 0 then.
  for (std::uint32_t i = 0; i < chunk_count(); ++i) {
    ChunkControl control{};
    if (!load_control(i, &control)) return true;
    if (control.producer.sequence == 0 && control.producer.state == kChunkFree &&
        control.producer.committed == 0 && control.collector.next_free == 0) {
      return true;
    }
  }
  return false;
}

std::vector<std::uint32_t> ArenaReader::used_chunks() const {
  constexpr std::uint32_t kBatch = 256;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
  std::vector<ChunkControl> controls(kBatch);
  for (std::uint32_t from = 0; from < chunk_count(); from += kBatch) {
    const std::uint32_t count = std::min(kBatch, chunk_count() - from);
    const std::uint64_t at = control_offset_ + sizeof(ChunkControl) * std::uint64_t{from};
    if (!bytes_->read(
            at, {reinterpret_cast<std::uint8_t*>(controls.data()), sizeof(ChunkControl) * count})) {
      break;  // the file was cut before them
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const ChunkProducerLine& line = controls[i].producer;
      if (line.state != kChunkFree && line.committed != 0)
        found.emplace_back(line.opened_ns, from + i);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::uint32_t> out;
  out.reserve(found.size());
  for (const auto& [opened_ns, index] : found) out.push_back(index);
  return out;
}

std::uint64_t ArenaReader::published_since_drain(const ChunkControl& control) const {
  if (control.producer.state == kChunkFree) return 0;
  // Newer than the state: what was confirmed since is no longer in the chunk alone.
  JournalPage journal{};
  (void)load_journal(&journal);
  const std::uint32_t published = count_of(control.producer.committed);
  const std::uint64_t drained =
      effective_drained(control.collector.drained, control.collector.staged_to,
                        control.collector.staged_position, journal.confirmed);
  return published - std::min(published, count_of(drained));
}

ChunkLook ArenaReader::look(std::uint32_t index, std::uint64_t confirmed, ChunkView* view) const {
  const std::uint64_t control_at = control_offset_ + sizeof(ChunkControl) * std::uint64_t{index};
  ChunkControl control{};
  if (!load_control(index, &control)) {
    view->problem = corrupt("the file ends before a chunk's state", control_at).error();
    return ChunkLook::kUnreadable;
  }
  const ChunkProducerLine& line = control.producer;
  if (line.state == kChunkFree || line.committed == 0) return ChunkLook::kEmpty;
  const std::uint32_t bytes = bytes_of(line.committed);
  view->index = index;
  view->sequence = line.sequence;
  view->tid = line.owner_tid;
  view->is_open = line.state == kChunkOpen;
  view->opened_ns = line.opened_ns;
  if ((line.state != kChunkOpen && line.state != kChunkClosed) || bytes < format::kHeaderBytes ||
      bytes > identity_.chunk_bytes - tables_bytes_) {
    view->problem = corrupt("a chunk's state or length can't be", control_at).error();
    return ChunkLook::kUnreadable;
  }
  const std::uint64_t stream_at =
      chunk_offset_ + std::uint64_t{identity_.chunk_bytes} * index + tables_bytes_;
  view->stream.resize(bytes);
  const bool is_there = bytes_->read(stream_at, view->stream);
  ChunkControl after{};
  if (load_control(index, &after) &&
      (after.producer.sequence != line.sequence || after.producer.state == kChunkFree ||
       !is_same_drain(control.collector, after.collector))) {
    view->events_unreadable = published_since_drain(after);
    return ChunkLook::kRecycled;
  }
  view->events_unreadable = count_of(line.committed);
  if (!is_there) {
    view->problem = corrupt("the file ends inside a chunk", stream_at).error();
    return ChunkLook::kUnreadable;
  }
  const Decoded decoded = decode(view->stream);
  view->stream.resize(decoded.bytes);
  view->events = decoded.events;
  view->last_ns = decoded.last_ns;
  view->events_unreadable -= std::min(view->events_unreadable, decoded.events);
  if (!decoded.problem.empty() || decoded.events != count_of(line.committed)) {
    view->problem =
        corrupt(decoded.problem.empty() ? "a chunk's number of events is wrong" : decoded.problem,
                stream_at + decoded.bytes)
            .error();
  }
  if (view->stream.size() < format::kHeaderBytes) return ChunkLook::kUnreadable;
  take_rest(effective_drained(control.collector.drained, control.collector.staged_to,
                              control.collector.staged_position, confirmed),
            line.committed, control_at, view);
  return ChunkLook::kRead;
}

std::optional<FreeChunk> ArenaReader::free_chunk(std::uint32_t index) const {
  ChunkControl control{};
  if (!load_control(index, &control) || control.producer.state != kChunkFree) return std::nullopt;
  return FreeChunk{control.producer.sequence, control.producer.owner_tid,
                   control.producer.opened_ns};
}

ChunkLook ArenaReader::read(std::uint32_t index, ChunkView* view) const {
  JournalPage journal{};
  (void)load_journal(&journal);
  ChunkLook result = ChunkLook::kRecycled;
  // Drained or recycled in the middle of a look: it is looked at again.
  for (int attempt = 0; attempt < 4 && result == ChunkLook::kRecycled; ++attempt) {
    view->events = view->events_in_segment = view->events_unreadable = view->rest_events =
        view->last_ns = 0;
    view->problem.reset();
    view->stream.clear();
    view->rest.clear();
    result = look(index, journal.confirmed, view);
  }
  if (result == ChunkLook::kUnreadable || result == ChunkLook::kRecycled) view->stream.clear();
  return result;
}

}  // namespace dial9::internal
