// What the cold paths of all threads share with the recorder that runs: the arena, and the clock
// line that is current. Strongest property: never destroyed, so that any thread at any time, after
// main and in destructors too, may look. Spec: docs/spec/recorder.md, "Life of a recorder".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/internal/clock.h"
#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

// The arena that threads take chunks from; null: no recorder. Before the epoch that allows its use.
inline void publish_arena(Arena* arena) noexcept {
  __atomic_store_n(&g_fork_page.arena, arena, __ATOMIC_SEQ_CST);
}

// Opens a new epoch: threads pass their cold path once, and record from then on.
void open_epoch() noexcept;
// No event is recorded that starts after this call.
void close_epoch() noexcept;
// A new epoch if recording is on, nothing else: makes threads take over a new clock line.
void renew_epoch() noexcept;
// Sets the bits in every epoch from now on (kSheddingBit), or clears them with 0. Whoever holds the
// rates (burst_gate.h), also while someone enables or disables.
void mark_epoch(std::uint32_t bits) noexcept;

// The arena that is current, and a hold on it: it stays mapped while this lives, on its creator's
// stack. Async-signal-safe.
class ArenaHold {
 public:
  explicit ArenaHold(std::uint32_t tid) noexcept;
  ~ArenaHold();
  ArenaHold(const ArenaHold&) = delete;
  ArenaHold& operator=(const ArenaHold&) = delete;
  Arena* get() const noexcept { return arena_; }

 private:
  std::uint32_t& users_;
  Arena* arena_;
};

// A SIGBUS at `address` came from our buffers, whose file was cut: recording is off, and the
// instruction can be run again (Arena::leave_file). False: it didn't. Async-signal-safe.
bool survive_cut_buffers(const void* address) noexcept;

// The thread gives back at its end what it holds: its chunk, its slot (shedding.h). False: it
// won't, since it is at its end already, or the system has no key for it.
bool watch_thread_exit() noexcept;

// The calling thread's id, asked for once.
std::uint32_t this_tid() noexcept;

// The buffer writes into `chunk` from now on, which was just taken from `arena`.
void adopt_chunk(ThreadBuffer& buffer, Arena& arena, std::uint32_t chunk) noexcept;

// After publish_arena(nullptr): true if no thread can still be using the arena that was there but
// through a chunk of its own.
bool arena_is_unreferenced() noexcept;

// The clock line that threads copy. One writer at a time (the collector); readers retry, lock-free.
void publish_clock(const ClockLine& line) noexcept;
ClockLine current_clock() noexcept;

// The thread leaves its chunk (thread exit, or a recorder that stopped).
void leave_chunk(ThreadBuffer& buffer) noexcept;

// Once a process: the thread-exit key and the fork handlers. Returns false where the system refused
// the key; exited threads are then found by their ids alone.
bool install_process_hooks() noexcept;

// Events that were lost since the last call while no recorder's counters were within reach.
std::uint64_t take_late_losses() noexcept;

const char* loss_cause_name(LossCause cause) noexcept;
// The cause of a RecorderLossEvent that is no loss: nothing was recorded, since it wasn't asked
// for.
inline constexpr char kRecordingOff[] = "recording_off";

}  // namespace dial9::internal
