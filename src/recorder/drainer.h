// Moves committed bytes from the arena into segments: a closed chunk by one copy, a partly filled
// one as a stream that continues. Strongest property: every committed event goes to the writer
// exactly once and in its thread's order, and a chunk comes back to the free list only when all of
// it is settled there, so that a kill at any instruction leaves each event in the segment or in the
// chunk (journal.h).
// Spec: docs/spec/recorder.md, "Draining".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "recorder/arena.h"
#include "recorder/chunk_list.h"
#include "recorder/segment_writer.h"
#include "recorder/stream_scanner.h"

namespace dial9::internal {

// How long committed events of a slow thread may lie in its chunk. Shorter: more repeated schemas.
inline constexpr std::uint64_t kPartialDrainNs = 1'000'000'000;

struct DrainResult {
  // Committed since the pass before, drained now or later.
  std::uint64_t events = 0;
  std::uint64_t host_events = 0;    // not recorded by the collector's own thread
  std::uint64_t waiting_bytes = 0;  // committed and not drained, after the pass
};

// The collector's thread only.
class Drainer {
 public:
  // Both outlive the drainer, which takes over the writer's on_settled.
  Drainer(Arena& arena, SegmentWriter& writer);
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // Called before bytes of a chunk go to the writer, and after their length was read: whatever
  // those events depend on can be told first.
  void set_before_append(std::function<void()> before) { before_append_ = std::move(before); }

  // One pass over all chunks. Partly filled ones are drained if they are due, or all of them.
  // Also finds the chunks of threads that died without giving them back.
  DrainResult drain(std::uint64_t now_ns, bool takes_all_partials, std::uint32_t own_tid);

 private:
  struct Chunk {
    std::uint64_t last_ns = 0;  // of the last partial drain or look at its owner
    std::uint32_t sequence = 0;
    std::uint32_t seen = 0;                  // events
    bool is_broken = false;                  // can't be followed: what else comes is lost
    std::unique_ptr<StreamScanner> scanner;  // once it was drained in part
  };
  void drain_chunk(std::uint32_t index, std::uint64_t committed, bool is_closed,
                   std::uint64_t now_ns);
  void finish(std::uint32_t index);
  void list_chunks();
  void on_settled();

  Arena& arena_;
  SegmentWriter& writer_;
  std::function<void()> before_append_;
  std::vector<Chunk> chunks_;
  std::vector<ChunkInUse> in_use_;     // of a pass
  std::vector<std::uint32_t> staged_;  // chunks whose bytes the writer has, not yet settled
};

}  // namespace dial9::internal
