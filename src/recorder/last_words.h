// For whoever records on a thread that may be about to die, inside a signal handler. The event goes
// into the thread's own chunk if that is whole and has room, or into a fresh one of its own; inside
// an interrupted record call into a chunk for this event alone; and with nothing free in the arena
// into one that was set aside. Strongest property: async-signal-safe,
// never waits, and the interrupted record call may go on afterwards.
// Spec: docs/spec/recorder.md, "Crashes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "dial9/internal/thread_buffer.h"
#include "recorder/recording_state.h"

namespace dial9::internal {

// Sets a chunk of the running recorder's arena aside, if none is. The collector's thread only: the
// chunk is given back when its owner is dead.
void keep_chunk_in_reserve() noexcept;

// One a signal handler's frame. open() and close() may be cut short by a fault in them and a jump
// out of it: close() puts right what it can.
class LastWords {
 public:
  LastWords() noexcept = default;
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  // True if the next record call of this thread has `bytes` (schema, pools and all) of room. False:
  // nothing is recorded here (off, a child of a fork or vfork, or no room, which is counted).
  bool open(std::size_t bytes) noexcept;
  void close() noexcept;

 private:
  bool take_chunk(Arena& arena) noexcept;

  std::optional<ArenaHold> hold_;
  ThreadBuffer saved_{};
  bool is_swapped_ = false;
};

}  // namespace dial9::internal
