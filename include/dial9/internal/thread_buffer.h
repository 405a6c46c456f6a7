// The thread buffer: where a thread of the host writes finished wire bytes. Strongest property: an
// event is visible to readers as a whole or not at all (one release store publishes it), whatever
// happens at any instruction: a signal whose handler records, a kill, a thread that ends.
//
//   thread-local            arena (a shared mapping, src/recorder/arena.h)
//   ThreadBuffer ─────────► ChunkControl   one line for the producer, one for the collector
//     begin, end ─────────► chunk          [ChunkTables | header, schemas, pools, events ... ]
//
// A thread owns one open chunk. Full: it closes it and takes another from the arena's free list,
// the only cold path with a shared line in it. Nothing here locks, allocates, waits or calls the
// kernel after a thread's first event. Spec: docs/spec/recorder.md, "Thread buffers".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/clock.h"

namespace dial9::internal {

class Arena;
struct EventType;

// Event types of a process that can be recorded; later ones are dropped as `too_many_types`.
inline constexpr std::uint32_t kMaxEventTypes = 4096;
inline constexpr std::uint32_t kSymbolSlots = 64;
inline constexpr std::uint32_t kTextSlots = 32;
// Pool ids of texts that belong to one chunk only; below are process-wide ids of Symbols.
inline constexpr std::uint32_t kChunkTextBit = 0x8000'0000;

// Why an event was not recorded. Names (loss_cause_name) go into RecorderLossEvent.
enum class LossCause : std::uint8_t {
  kArenaFull,     // no free chunk: the collector or the disk is slower than the program
  kThreadShare,   // the thread is over its share and the arena is too full for a burst
  kNested,        // recorded inside a record call of the same thread (a signal handler)
  kTooLarge,      // doesn't fit into a chunk
  kTooManyTypes,  // more than kMaxEventTypes event types
  kSpanTable,     // more tasks with open spans than the span table holds
  kWriteFailed,   // the segment could not be written (disk full, read-only, removed)
  kFileRemoved,   // the segment was removed by someone while it was written
  kInternal,      // a bug of ours: bytes that we can't read back
  kTurnedOff,     // recording was turned off between the call's begin and its writing
  kCount,
};
inline constexpr std::size_t kLossCauses = static_cast<std::size_t>(LossCause::kCount);

// Written by the owner of the chunk, read by the collector; and the other way round. Each on a line
// of its own: a drain never takes the line that the producer writes at every event for longer than
// a read.
struct alignas(64) ChunkProducerLine {
  // count << 32 | bytes. The release store of this word publishes everything before it (pairs with
  // the acquire load in Arena::drain and in recovery).
  std::uint64_t committed;
  std::uint64_t opened_ns;
  std::uint32_t owner_tid;
  std::uint32_t state;     // ChunkState
  std::uint32_t sequence;  // bumped at each take: tells one use of a chunk from the next
};
struct alignas(64) ChunkCollectorLine {
  std::uint64_t drained;          // count << 32 | bytes that are in a segment already
  std::uint64_t staged_to;        // the same, once `staged_position` is confirmed (journal.h)
  std::uint64_t staged_position;  // 0: nothing staged
  std::uint32_t next_free;
};
struct ChunkControl {
  ChunkProducerLine producer;
  ChunkCollectorLine collector;
};
static_assert(sizeof(ChunkProducerLine) == 64 && sizeof(ChunkCollectorLine) == 64);
static_assert(offsetof(ChunkControl, collector) == 64);

enum ChunkState : std::uint32_t {
  kChunkFree = 0,    // on the free list; the taker makes it open
  kChunkOpen = 1,    // its owner writes
  kChunkClosed = 2,  // nobody writes; the collector drains the rest and frees it
};

inline constexpr std::uint32_t kNoSymbol = 0xFFFF'FFFF;

// What the open chunk has defined already. Lies in front of the chunk's bytes; cleared at a take.
struct ChunkTables {
  std::uint64_t schemas[kMaxEventTypes / 64];
  // Direct-mapped by id: a lost entry costs a second definition. The first isn't 0 in a chunk that
  // has none, so that id 0 (not given yet) is never found.
  std::uint32_t symbols[kSymbolSlots];
  struct Text {
    std::uint32_t hash;
    std::uint32_t id;      // 0: empty
    std::uint32_t offset;  // of the text in the chunk's stream, for the comparison
    std::uint32_t size;
  } texts[kTextSlots];
  std::uint32_t next_text;
  std::uint32_t next_stack;
};

// The thread's part. Trivial, zero-initialised, never destroyed: usable from thread_local and
// pthread key destructors and after main. The first 64 bytes are what a warm event touches, besides
// the clock.
struct ThreadBuffer {
  std::uint32_t ready_epoch;  // == the epoch: may record; kBusyEpoch: inside a record call
  std::uint32_t tid;
  // Of the open chunk: events << 32 | bytes, as its published word, but with the definitions that
  // lie behind the last event.
  std::uint64_t written;
  // What an event's last byte may reach by the short way (write_event.h): the chunk's end; null
  // where there is none, or the clock isn't the counter.
  std::uint8_t* short_way_end;
  std::uint8_t* begin;  // of the chunk's stream; null: no chunk
  std::uint64_t base_ns;
  ChunkControl* control;
  ChunkTables* tables;
  // What the cursor must be below for the short way of the events of polls and wakes
  // (src/recorder/poll_events.h); null: the chunk lacks what it needs.
  std::uint8_t* poll_events_end;
  ClockLine clock;
  std::uint8_t* end;            // of the chunk's stream
  std::uint32_t is_exiting;     // has given its chunk back at the thread's end already
  std::uint32_t arena_serial;   // of the chunk's arena
  LossCause last_loss;          // of this thread; kCount: an event was shed since
  std::uint32_t process;        // whose thread this was (process_number() of src/recorder)
  std::uint64_t read_ns;        // the last time that now_ns() gave out
  std::uint64_t events_before;  // in the chunks before the open one

  // Where the next byte goes; null: no chunk.
  std::uint8_t* cursor() const noexcept { return begin + static_cast<std::uint32_t>(written); }
  // After a change of the chunk or of the clock.
  void set_short_way() noexcept { short_way_end = clock.mult != 0 ? end : nullptr; }
  // Behind what defines something for an event to come.
  void move_cursor(const std::uint8_t* to) noexcept { set_written(written >> 32, to); }
  void set_written(std::uint64_t events, const std::uint8_t* to) noexcept {
    written = events << 32 | static_cast<std::uint32_t>(to - begin);
  }
  // That the thread has published, ever.
  std::uint64_t events() const noexcept { return events_before + (written >> 32); }
};
static_assert(offsetof(ThreadBuffer, clock) == 64);

inline constexpr std::uint32_t kBusyEpoch = 0xFFFF'FFFF;

// What no child of a fork may take over. It fills a page, which the kernel shows such a child as
// zeros however it was made (src/recorder/fork_child.h): off, and without an arena.
inline constexpr std::size_t kForkPageBytes = 4096;
struct alignas(kForkPageBytes) ForkPage {
  // 0: off. Else the epoch of the recording: changes at enable, disable, start, stop and at each
  // recalibration of the clock, so that one comparison covers them all; its top bit is set while
  // some of the events are shed (src/recorder/shedding.h). Relaxed in the hot path; the cold path
  // pairs an acquire load with the release store of whoever changed it.
  std::uint32_t epoch;
  std::uint32_t epoch_bits;  // of every epoch that is opened
  std::uint32_t process;     // 0: a child that nobody has noticed yet
  Arena* arena;              // that threads take chunks from; null: no recorder
  // Threads that may hold a pointer to `arena`, by thread id. Lines of their own.
  struct alignas(64) Users {
    std::uint32_t count;
  } arena_users[16];
};
static_assert(sizeof(ForkPage) == kForkPageBytes);
extern ForkPage g_fork_page;

extern __thread ThreadBuffer t_buffer __attribute__((tls_model("initial-exec")));

inline std::uint32_t recording_epoch() noexcept {
  return __atomic_load_n(&g_fork_page.epoch, __ATOMIC_RELAXED);
}

// Keeps the compiler from moving memory accesses across it; all that a signal handler of the same
// thread needs.
inline void signal_fence() noexcept { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// --- The ways out of the hot path ---------------------------------------------------------------
// Each is noinline, async-signal-safe once the thread has recorded, and counts what it drops.

// The thread isn't ready for the epoch: attaches it, takes over a new clock line, leaves an old
// recorder's chunk, or counts a nested event; while the recorder sheds, no thread is ready, and
// this decides about each event, which is about `task` (0: none). False: the event is dropped or
// shed (or recording is off).
[[gnu::cold, gnu::noinline]] bool thread_enter(ThreadBuffer& buffer, EventType& type,
                                               std::uint64_t task) noexcept;

// Makes room for `need` bytes and the schema of `type`, which it writes if the chunk lacks it.
// False: dropped and counted. May change chunk: pool ids found before are void.
[[gnu::cold, gnu::noinline]] bool thread_reserve(ThreadBuffer& buffer, EventType& type,
                                                 std::size_t need) noexcept;

// Makes the next `size` bytes visible to readers, and all before them, as one more event. The
// thread's own word is the published one, so an event has no store for a count: stores are what
// events wait for. A child that a signal's handler clones inside the call writes the same word if
// it comes before its parent's next event.
inline void thread_publish(ThreadBuffer& buffer, std::size_t size) noexcept {
  const std::uint64_t written = buffer.written + ((std::uint64_t{1} << 32) + size);
  buffer.written = written;
  __atomic_store_n(&buffer.control->producer.committed, written, __ATOMIC_RELEASE);
}

// Counts one lost event, with its time. Any thread, any context.
[[gnu::cold, gnu::noinline]] void count_loss(LossCause cause, std::uint64_t count = 1) noexcept;

// CLOCK_MONOTONIC ns by the recorder's clock, on any thread, recording or not.
std::uint64_t now_ns() noexcept;

}  // namespace dial9::internal
