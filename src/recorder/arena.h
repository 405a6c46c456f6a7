// The arena: one mapping that holds every thread's buffers. File-backed and shared where the
// recorder has a directory, so that published events outlive the process; a memfd else. Strongest
// property: its size is fixed at creation and fully reserved on disk, so neither thread storms nor
// a full disk can make a store into it fail. Spec: docs/spec/recorder.md, "Arena".
//
//   0            ArenaHeader   one page: identity, layout, clock, free list, raised rates
//   journal_offset JournalPage what of all this is in segments, and the metadata (journal.h)
//   loss_offset  LossStripe[]  what was dropped, by cause, striped by thread
//   held_offset  u32[]         chunks held, by thread id modulo kHeldSlots
//   control_offset ChunkControl[chunk_count]
//   chunk_offset chunk_count * chunk_bytes, each [ChunkTables | stream bytes]
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "dial9/internal/thread_buffer.h"
#include "recorder/journal.h"
#include "recorder/shed_class.h"

namespace dial9::internal {

inline constexpr char kArenaMagic[8] = {'D', '9', 'A', 'R', 'E', 'N', 'A', '\n'};
inline constexpr std::uint32_t kArenaVersion = 2;
inline constexpr std::uint32_t kChunkBytes = 16 << 10;
inline constexpr std::uint32_t kMinChunks = 4;
inline constexpr std::uint32_t kLossStripes = 16;
inline constexpr std::uint32_t kHeldSlots = 4096;  // thread ids are dense: neighbours don't collide
inline constexpr std::uint32_t kNoChunk = 0xFFFF'FFFF;
inline constexpr std::uint32_t kChunkStreamBytes = kChunkBytes - sizeof(ChunkTables);

// One cause's counters. Written with relaxed atomics by the threads of a stripe.
struct alignas(32) LossCounter {
  std::uint64_t count;     // since the arena was made: only grows
  std::uint64_t first_ns;  // of the losses since the last report; 0: none
  std::uint64_t last_ns;
};
struct alignas(64) LossStripe {
  LossCounter causes[kLossCauses];
};

struct ArenaHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t chunk_bytes;
  std::uint32_t chunk_count;
  std::uint32_t tables_bytes;
  std::uint64_t journal_offset;
  std::uint64_t loss_offset;
  std::uint64_t held_offset;
  std::uint64_t control_offset;
  std::uint64_t chunk_offset;
  std::uint64_t total_bytes;
  std::uint32_t pid;
  std::uint32_t burst_floor;   // free chunks below which only threads within their share get one
  std::uint32_t share_chunks;  // what a thread may hold at any time
  std::uint32_t loss_causes;   // counters a stripe
  std::uint64_t started_ns;    // CLOCK_MONOTONIC
  std::uint64_t started_realtime_ns;  // of the same moment
  char boot_id[32];
  ClockLine clock;  // as last calibrated
  // tag << 32 | index of the first free chunk (kNoChunk: none). The tag makes a pop safe against a
  // chunk that was taken and given back in between.
  alignas(64) std::uint64_t free_head;
  std::uint32_t free_count;       // a hint: may lag the list by the takes in flight
  alignas(64) ShedRaises raises;  // that are in no segment yet
  // When recording was turned off, and on again, if no segment tells of it (recording_pause.h). 0:
  // it wasn't; it still is off.
  std::uint64_t off_since_ns;
  std::uint64_t off_until_ns;
  // When the recorder was stopped; 0: it runs. Before the first call that isn't recorded any more.
  std::uint64_t stopped_ns;
};
static_assert(sizeof(ArenaHeader) <= 4096);

struct ArenaOptions {
  std::uint64_t bytes = std::uint64_t{16} << 20;
  std::uint32_t thread_bytes = 64 << 10;
  std::string path;           // empty: memory
  bool is_anonymous = false;  // in memory: no memory file, so that nothing outside can open it
  std::string boot_id;
};

// Takes and frees are lock-free; take() and close() are async-signal-safe. The object outlives the
// recorder while a thread still has a chunk of it open (Retired, recorder_core.cc).
class Arena {
 public:
  static Result<std::unique_ptr<Arena>> create(const ArenaOptions& options);
  ~Arena();  // unmaps; the file, if any, stays
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  ArenaHeader& header() const { return *header_; }
  // The collector's: one writer.
  Journal journal() const;
  std::uint32_t chunk_count() const { return header_->chunk_count; }
  ChunkControl& control(std::uint32_t chunk) const { return controls_[chunk]; }
  std::uint32_t index_of(const ChunkControl& control) const {
    return static_cast<std::uint32_t>(&control - controls_);
  }
  ChunkTables& tables(std::uint32_t chunk) const;
  std::uint8_t* stream(std::uint32_t chunk) const;
  std::uint32_t free_chunks() const;
  // Tells this arena from every other of the process; never 0.
  std::uint32_t serial() const { return serial_; }

  // A free chunk, opened for the thread: its header frame is written, nothing is committed.
  // kNoChunk and the cause if there is none for it.
  std::uint32_t take(std::uint32_t tid, std::uint64_t now_ns, LossCause* cause);
  // By the owner, or by the collector for an owner that is dead.
  static void close(ChunkControl& control);
  // Back to the free list; everything in it is drained. Collector only.
  void free(std::uint32_t chunk);

  // Of 64 chunks from `group` * 64 on, those that may be in use, lowest first: each whose state
  // isn't free is among them. A pass needn't look at all chunks, most of which are free and cold.
  std::uint64_t marked(std::uint32_t group) const {
    return __atomic_load_n(&marks_[group], __ATOMIC_ACQUIRE);  // pairs with take()
  }
  std::uint32_t mark_groups() const { return (chunk_count() + 63) / 64; }

  // count << 32 | bytes of the chunk that a pass of the collector has seen.
  std::uint64_t seen(std::uint32_t chunk) const {
    return __atomic_load_n(&seen_[chunk], __ATOMIC_RELAXED);
  }
  void note_seen(std::uint32_t chunk, std::uint64_t committed) {
    __atomic_store_n(&seen_[chunk], committed, __ATOMIC_RELAXED);
  }

  // Adds to the counters of the thread's stripe.
  void count_loss(LossCause cause, std::uint64_t count, std::uint32_t tid, std::uint64_t first_ns,
                  std::uint64_t last_ns);
  // Sum over the stripes.
  std::uint64_t loss_total(LossCause cause) const;
  // What the collector counted, for causes that it alone counts.
  std::uint64_t loss_in_first_stripe(LossCause cause) const;
  // Hands out, and forgets, the time range of the losses since the last call. False: none.
  bool take_loss_range(LossCause cause, std::uint64_t* first_ns, std::uint64_t* last_ns);

  // Published, and given to no segment. Exact while the collector rests.
  std::uint64_t undrained_events() const;

  // True while some thread that lives has a chunk open: the mapping must stay. Marks the chunks of
  // dead threads as closed.
  bool has_live_owner();

  // The file was cut: each store into what it lacks is a SIGBUS. Memory of this process alone takes
  // its place, at the same addresses and with the same layout, but with no chunk and no count in
  // it; what was published and is in no segment is gone. Stays mapped for ever. Any thread,
  // async-signal-safe. False: there is no memory.
  bool leave_file() noexcept;
  bool has_left_file() const noexcept { return __atomic_load_n(&left_, __ATOMIC_ACQUIRE) != 0; }
  bool holds(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at - reinterpret_cast<std::uintptr_t>(header_) < bytes_;
  }

 private:
  Arena(void* base, std::size_t bytes);
  std::uint32_t pop();
  void push(std::uint32_t chunk);
  std::uint32_t& held(std::uint32_t tid) const;

  ArenaHeader* header_;
  ChunkControl* controls_;
  LossStripe* stripes_;
  std::size_t bytes_;
  std::uint32_t serial_;
  std::uint32_t left_ = 0;
  std::unique_ptr<std::uint64_t[]> seen_;   // of each chunk
  std::unique_ptr<std::uint64_t[]> marks_;  // of each 64; set by who takes one, cleared by free()
  ArenaHeader first_header_{};
};

// True if the thread of this process exists. By tgkill with signal 0, which sends nothing.
bool is_thread_alive(std::uint32_t tid);

}  // namespace dial9::internal
