// See drainer.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/drainer.h"

#include <optional>

#include "format/wire.h"

namespace dial9::internal {
namespace {

std::uint32_t bytes_of(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t count_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

}  // namespace

Drainer::Drainer(Arena& arena, SegmentWriter& writer)
    : arena_(arena), writer_(writer), chunks_(arena.chunk_count()) {
  staged_.reserve(arena.chunk_count());
  in_use_.reserve(arena.chunk_count());
  writer_.set_on_settled([this] { on_settled(); });
}

Drainer::~Drainer() { writer_.set_on_settled({}); }

void Drainer::finish(std::uint32_t index) {
  chunks_[index].scanner.reset();
  arena_.free(index);
}

void Drainer::on_settled() {
  for (const std::uint32_t index : staged_) {
    ChunkControl& control = arena_.control(index);
    const std::uint64_t to = control.collector.staged_to;
    // In this order: a kill in between leaves both, which say the same.
    __atomic_store_n(&control.collector.drained, to, __ATOMIC_RELEASE);
    __atomic_store_n(&control.collector.staged_position, std::uint64_t{0}, __ATOMIC_RELEASE);
    // Closed since it was staged, and filled up before: the rest comes with the next pass.
    const std::uint32_t state = __atomic_load_n(&control.producer.state, __ATOMIC_ACQUIRE);
    const bool is_whole = __atomic_load_n(&control.producer.committed, __ATOMIC_RELAXED) == to;
    if (state == kChunkClosed && is_whole) finish(index);
  }
  staged_.clear();
}

void Drainer::drain_chunk(std::uint32_t index, std::uint64_t committed, bool is_closed,
                          std::uint64_t now_ns) {
  ChunkControl& control = arena_.control(index);
  Chunk& chunk = chunks_[index];
  const std::uint64_t drained = __atomic_load_n(&control.collector.drained, __ATOMIC_RELAXED);
  const std::span<const std::uint8_t> bytes(arena_.stream(index) + bytes_of(drained),
                                            bytes_of(committed) - bytes_of(drained));
  StreamInfo info;
  info.events = count_of(committed) - count_of(drained);
  info.first_ns = drained == 0 ? control.producer.opened_ns : chunk.last_ns;
  info.last_ns = now_ns;
  std::vector<std::uint8_t> prefix;
  if (drained != 0) prefix = chunk.scanner->continuation();
  if (!is_closed && !chunk.is_broken) {
    if (chunk.scanner == nullptr) chunk.scanner = std::make_unique<StreamScanner>();
    const auto frames = drained == 0 ? bytes.subspan(format::kHeaderBytes) : bytes;
    chunk.is_broken = !chunk.scanner->scan(frames);
  }
  chunk.last_ns = now_ns;
  if (arena_.has_left_file()) return;  // zeros have taken the place of what was scanned
  if (chunk.is_broken) {
    arena_.count_loss(LossCause::kInternal, info.events, 0, info.first_ns, info.last_ns);
    __atomic_store_n(&control.collector.drained, committed, __ATOMIC_RELEASE);
    return;
  }
  if (before_append_) before_append_();
  const std::uint64_t settled_at = writer_.append(prefix, bytes, info, now_ns);
  // Or the place of what was copied: the mark comes before the zeros (Arena::leave_file).
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (arena_.has_left_file()) return writer_.take_back();
  // In this order: the position makes the other one count, as soon as it is confirmed.
  __atomic_store_n(&control.collector.staged_to, committed, __ATOMIC_RELEASE);
  __atomic_store_n(&control.collector.staged_position, settled_at, __ATOMIC_RELEASE);
  staged_.push_back(index);
}

// Those of a thread in the order in which it filled them. Whoever sees a thread's chunk here finds
// the one before closed, since their states and lengths are read only after this.
void Drainer::list_chunks() {
  const auto marked = [&](std::uint32_t group) { return arena_.marked(group); };
  const auto opened_ns = [&](std::uint32_t i) -> std::optional<std::uint64_t> {
    const ChunkProducerLine& line = arena_.control(i).producer;
    if (__atomic_load_n(&line.state, __ATOMIC_ACQUIRE) == kChunkFree) return std::nullopt;
    return line.opened_ns;
  };
  list_chunks_in_use(arena_.mark_groups(), marked, opened_ns, in_use_);
}

DrainResult Drainer::drain(std::uint64_t now_ns, bool takes_all_partials, std::uint32_t own_tid) {
  DrainResult result;
  list_chunks();
  for (const auto& [opened_ns, i] : in_use_) {
    ChunkControl& control = arena_.control(i);
    // State before length: what is closed has its final length (pairs with Arena::close).
    const std::uint32_t state = __atomic_load_n(&control.producer.state, __ATOMIC_ACQUIRE);
    if (state == kChunkFree) continue;
    // Staged by a pass that an exception ended: the next flush settles it, once.
    if (__atomic_load_n(&control.collector.staged_position, __ATOMIC_RELAXED) != 0) continue;
    const bool is_closed = state == kChunkClosed;
    Chunk& chunk = chunks_[i];
    if (chunk.sequence != control.producer.sequence) {
      chunk = {};
      chunk.last_ns = control.producer.opened_ns;
      chunk.sequence = control.producer.sequence;
    }
    const std::uint64_t committed = __atomic_load_n(&control.producer.committed, __ATOMIC_ACQUIRE);
    const std::uint64_t drained = __atomic_load_n(&control.collector.drained, __ATOMIC_RELAXED);
    if (arena_.has_left_file()) break;  // its counts are zeros from here on
    const std::uint64_t fresh = count_of(committed) - count_of(drained);
    // Opened by another clock than this pass's: it may lie a little ahead.
    const bool is_due = takes_all_partials || now_ns >= chunk.last_ns + kPartialDrainNs;
    const bool is_drained = fresh != 0 && (is_closed || is_due);
    if (is_drained) {
      drain_chunk(i, committed, is_closed, now_ns);
    } else if (fresh == 0 && !is_closed && is_due) {
      chunk.last_ns = now_ns;
      if (!is_thread_alive(control.producer.owner_tid)) Arena::close(control);  // freed next pass
    }
    if (!is_drained) result.waiting_bytes += bytes_of(committed) - bytes_of(drained);
    arena_.note_seen(i, committed);
    const std::uint32_t news = count_of(committed) - chunk.seen;
    chunk.seen = count_of(committed);
    result.events += news;
    if (control.producer.owner_tid != own_tid) result.host_events += news;
    if (is_closed && (!is_drained || chunk.is_broken)) finish(i);
  }
  return result;
}

}  // namespace dial9::internal
