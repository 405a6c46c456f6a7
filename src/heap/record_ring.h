// From the threads that allocate to the collector: records of any size in a ring of cells, many
// writers, one reader. Strongest property: a writer claims its cells with one compare-and-swap,
// fills and publishes them; it never waits, and what finds no room is counted. Allocations leave a
// quarter of the ring to frees, whose loss would make what they freed seem alive. Zeroed memory is
// an empty ring. Spec: docs/spec/heap_samples.md, "Ring".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/sample_context.h"
#include "unwind/unwind.h"

namespace dial9::heap {

enum class RecordKind : std::uint8_t { kPad, kAlloc, kFree };

// The first cell of a record; the first word of every cell is 0 but in a published record.
struct alignas(64) RecordHead {
  std::uint32_t cells;  // 0: not published
  RecordKind kind;
  unwind::Method method;
  bool is_truncated;
  bool is_tracked;
  std::uint64_t at_ns;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t extra;  // an allocation's sample rate; a free's allocation time
  std::uint32_t tid;
  std::uint16_t frames;
  bool has_label;
};
static_assert(sizeof(RecordHead) == 64);

// What follows the head of an allocation: task and span, the label if it has one, the frames. As
// bytes, since the first word of a cell is the ring's.
struct AllocBody {
  std::uint64_t task;
  std::uint64_t span;
  const internal::LabelText* label;  // null: none
  std::span<const std::uint64_t> frames;
};

class RecordRing {
 public:
  static constexpr std::uint32_t kCellBytes = 64;
  static constexpr std::uint32_t kCells = 1U << 16;
  static constexpr std::uint32_t kMostFrames = 192;

  // --- Writers. False: no room; counted. `head.cells` and the sizes in it are the ring's.
  bool put_alloc(RecordHead head, const AllocBody& body) noexcept;
  bool put_free(const RecordHead& head) noexcept;
  // Would an allocation with so many frames have room now?
  bool has_room(std::uint32_t frames) const noexcept;

  // --- The reader: the oldest record, if it is published, until pop().
  struct Record {
    RecordHead head;
    std::uint64_t task;
    std::uint64_t span;
    internal::LabelText label;
    std::uint64_t frames[kMostFrames];
  };
  bool front(Record* record) noexcept;
  void pop() noexcept;
  // Everything claimed so far that is published; the rest stays.
  void drop_published() noexcept;
  bool is_empty() const noexcept;

 private:
  std::uint8_t* cell(std::uint64_t position) noexcept;
  std::uint8_t* claim(std::uint32_t cells, std::uint64_t most_used) noexcept;
  static void publish(std::uint8_t* cells, const RecordHead& head) noexcept;

  alignas(64) std::uint64_t tail_;  // writers'
  alignas(64) std::uint64_t head_;  // the reader's
  alignas(64) std::uint8_t bytes_[kCells * kCellBytes];
};

}  // namespace dial9::heap
