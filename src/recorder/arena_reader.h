// Reads the arena of another process, alive or dead, without its help: identity, counters, and each
// chunk's published events as an ordinary stream. Strongest property: it trusts nothing that it
// reads. Every number is checked against the size that there really is, every stream went through
// the decoder, and a chunk that its process recycled meanwhile is thrown away. It maps nothing, so
// a file that shrinks can't hurt. Spec: docs/spec/recorder.md, "Reading an arena".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "dial9/internal/clock.h"
#include "recorder/arena.h"
#include "recorder/guarded_fd.h"

namespace dial9::internal {

// Where an arena's bytes are.
class ArenaBytes {
 public:
  virtual ~ArenaBytes() = default;
  virtual std::uint64_t size() const = 0;
  // False if not all of [offset, offset + to.size()) can be read (now).
  virtual bool read(std::uint64_t offset, std::span<std::uint8_t> to) const = 0;
  // True once the system refused a read: then what is there isn't known.
  virtual bool has_failed() const { return false; }
  virtual ErrorCode failure() const { return ErrorCode::kIo; }
};

struct ArenaIdentity {
  std::uint32_t version = 0;
  std::uint32_t pid = 0;
  std::string boot_id;
  std::uint64_t started_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t started_realtime_ns = 0;
  std::uint32_t chunk_count = 0;
  std::uint32_t chunk_bytes = 0;  // with its tables
  std::uint64_t total_bytes = 0;  // as it was made
  bool is_cut = false;            // there are fewer bytes than that
};

struct ArenaLoss {
  std::string cause;
  std::uint64_t count = 0;     // since the start
  std::uint64_t told = 0;      // of them, in RecorderLossEvents of segments
  std::uint64_t first_ns = 0;  // of what isn't told; 0: not known
  std::uint64_t last_ns = 0;
};

// A segment that the process was writing, as its journal has it.
struct ArenaSegment {
  std::uint64_t index = 0;
  std::uint64_t bytes = 0;  // whole streams up to here; what follows is a write that was under way
  bool is_ended = false;    // nothing more was to come: it may be sealed, moved or evicted since
};

struct ChunkView {
  std::uint32_t index = 0;
  std::uint32_t sequence = 0;  // tells one use of the chunk from the next
  std::uint32_t tid = 0;
  bool is_open = false;  // its thread writes on
  std::uint64_t opened_ns = 0;
  std::uint64_t events = 0;             // whole ones in `stream`
  std::uint64_t events_in_segment = 0;  // the first so many of them
  std::uint64_t events_unreadable = 0;  // published, but not followed: `problem`, or kRecycled
  std::optional<Error> problem;         // with its offset in the arena
  std::vector<std::uint8_t> stream;     // header, definitions and events, from the chunk's start
  // What is in no segment, as a stream of its own; empty if nothing.
  std::vector<std::uint8_t> rest;
  std::uint64_t rest_events = 0;
  std::uint64_t last_ns = 0;  // the latest stamp in `stream`
};

enum class ChunkLook : std::uint8_t {
  kEmpty,     // nothing published
  kRead,      // all that was published, up to `problem`
  kRecycled,  // its process drained it, or used it anew, during each look: what was drained is in a
              // segment, and what was published since is `events_unreadable`
  kUnreadable,  // nothing of it could be used: `problem`
};

// A chunk that is free now, and the last use it had.
struct FreeChunk {
  std::uint32_t sequence = 0;  // 0: never used
  std::uint32_t tid = 0;
  std::uint64_t opened_ns = 0;
};

// Not thread-safe. Reads by system calls; the other process isn't stopped and notices nothing.
class ArenaReader {
 public:
  // A file: by its name in a run directory, /proc/PID/map_files/…, /proc/PID/fd/….
  // Errors: of the system; kCorrupt or kUnsupported with the offset of what is wrong.
  static Result<ArenaReader> open(const std::string& path);
  static Result<ArenaReader> open_fd(GuardedFd fd, const std::string& name);
  // The arena that the process has mapped, wherever it lies: through its mapped files, else through
  // its memory (needs the right to trace it). Of several the newest of a recorder that runs, else
  // the newest; those of others that run in it (copies of the library) go into `others`. `pid` may
  // be that of any thread which lives: that of a main thread which has ended leads nowhere.
  // kNotFound if it has none, kPermission where it isn't ours to read.
  static Result<ArenaReader> open_process(pid_t pid, std::vector<ArenaIdentity>* others = nullptr);
  static Result<ArenaReader> from(std::unique_ptr<ArenaBytes> bytes);

  const ArenaIdentity& identity() const { return identity_; }
  std::uint32_t chunk_count() const { return identity_.chunk_count; }
  // Of the moment of the call.
  std::uint32_t free_chunks() const;
  ClockLine clock() const;
  // All causes that occurred.
  std::vector<ArenaLoss> losses() const;
  // Those that make sense, up to the first that doesn't.
  ShedRaises raises() const;
  // When recording was turned off and on again, if no segment tells of it. Each 0: not; not yet.
  struct Off {
    std::uint64_t since_ns = 0;
    std::uint64_t until_ns = 0;
  };
  Off off_stretch() const;
  // When its recorder was stopped: nothing is recorded since. 0: it runs, or was killed.
  std::uint64_t stopped_ns() const;
  // The newest segment that the journal knows; none before the first.
  std::optional<ArenaSegment> active_segment() const;
  std::optional<ArenaSegment> segment(std::uint64_t index) const;
  // The stream that each segment begins with: a clock pair and the metadata. Empty: none yet.
  std::vector<std::uint8_t> prologue() const;
  JournalRecovery recovery() const;
  // False: what a recorder writes there before any thread can record is missing. Then nothing says
  // what of the chunks is in segments.
  bool has_journal() const;
  // True if the state of some chunk can't be known: how many events it held, neither.
  bool has_lost_chunks() const;
  bool has_failed() const { return bytes_->has_failed(); }

  // Marks the file of a dead process (the same one, again by its name), for a recovery.
  Result<void> mark_recovered(const std::string& path, const JournalRecovery& mark) const;

  // Chunks that are open or closed and hold something, by the time they were opened.
  std::vector<std::uint32_t> used_chunks() const;
  // Looks at one chunk, `index` < chunk_count(). `view` is reused: its buffers keep their memory.
  // Cost: a decode of the chunk's bytes.
  ChunkLook read(std::uint32_t index, ChunkView* view) const;
  // Nothing if the chunk isn't free, or can't be read.
  std::optional<FreeChunk> free_chunk(std::uint32_t index) const;

 private:
  explicit ArenaReader(std::unique_ptr<ArenaBytes> bytes) : bytes_(std::move(bytes)) {}
  Result<void> check_header();
  bool is_blank(const ArenaHeader& header) const;
  template <class T>
  bool load(std::uint64_t offset, T* out) const {
    return bytes_->read(offset, {reinterpret_cast<std::uint8_t*>(out), sizeof(T)});
  }
  bool load_journal(JournalPage* page) const;
  bool load_control(std::uint32_t index, ChunkControl* control) const;
  // Events that are in no segment.
  std::uint64_t published_since_drain(const ChunkControl& control) const;
  ChunkLook look(std::uint32_t index, std::uint64_t confirmed, ChunkView* view) const;

  std::unique_ptr<ArenaBytes> bytes_;
  ArenaIdentity identity_;
  std::uint32_t tables_bytes_ = 0;
  std::uint32_t loss_causes_ = 0;
  std::uint64_t journal_offset_ = 0;
  std::uint64_t loss_offset_ = 0;
  std::uint64_t control_offset_ = 0;
  std::uint64_t chunk_offset_ = 0;
};

}  // namespace dial9::internal
