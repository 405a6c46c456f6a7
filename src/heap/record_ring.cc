// See record_ring.h. A body is written past the first word of each of its cells, which only the
// publishing of a record and the reader's pop() touch: so a reader that looks at a cell that is
// claimed and not published finds 0, whatever was there a round ago.
// SPDX-License-Identifier: Apache-2.0
#include "heap/record_ring.h"

#include <algorithm>
#include <cstring>

namespace dial9::heap {
namespace {

constexpr std::size_t kCellBody = RecordRing::kCellBytes - 8;

std::uint32_t cells_for(std::size_t body_bytes) noexcept {
  return 1 + static_cast<std::uint32_t>((body_bytes + kCellBody - 1) / kCellBody);
}

// Bytes after the head, around the words that are the ring's. A cell starts anew where it is full.
class Body {
 public:
  explicit Body(std::uint8_t* head) : at_(head + RecordRing::kCellBytes + 8), left_(kCellBody) {}

  void write(const void* from, std::size_t bytes) noexcept {
    move(bytes, [&](std::size_t done, std::size_t part) {
      std::memcpy(at_, static_cast<const std::uint8_t*>(from) + done, part);
    });
  }
  void read(void* to, std::size_t bytes) noexcept {
    move(bytes, [&](std::size_t done, std::size_t part) {
      std::memcpy(static_cast<std::uint8_t*>(to) + done, at_, part);
    });
  }

 private:
  template <class Copy>
  void move(std::size_t bytes, Copy copy) noexcept {
    for (std::size_t done = 0; done < bytes;) {
      if (left_ == 0) {
        at_ += 8;
        left_ = kCellBody;
      }
      const std::size_t part = std::min(bytes - done, left_);
      copy(done, part);
      at_ += part;
      left_ -= part;
      done += part;
    }
  }

  std::uint8_t* at_;
  std::size_t left_;
};

std::size_t body_bytes(std::size_t frames, bool has_label) noexcept {
  return 16 + (has_label ? sizeof(internal::LabelText) : 0) + frames * 8;
}

}  // namespace

std::uint8_t* RecordRing::cell(std::uint64_t position) noexcept {
  return bytes_ + (position % kCells) * kCellBytes;
}

// Cells that follow one another in memory: where the ring's end comes first, what is left there is
// claimed too, as a record without a meaning. Null: that would use more than `most_used`.
std::uint8_t* RecordRing::claim(std::uint32_t cells, std::uint64_t most_used) noexcept {
  std::uint64_t from = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
  for (;;) {
    const auto to_end = static_cast<std::uint32_t>(kCells - from % kCells);
    const std::uint32_t pad = to_end < cells ? to_end : 0;
    // Acquire: the reader is done with the cells (pairs with the release in pop).
    const std::uint64_t used = from - __atomic_load_n(&head_, __ATOMIC_ACQUIRE);
    // `from` may be old, and the reader past it: then the exchange fails.
    if (used <= kCells && used + pad + cells > most_used) return nullptr;
    if (__atomic_compare_exchange_n(&tail_, &from, from + pad + cells, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      if (pad != 0) {
        RecordHead filler{};
        filler.cells = pad;
        publish(cell(from), filler);
      }
      return cell(from + pad);
    }
  }
}

void RecordRing::publish(std::uint8_t* cells, const RecordHead& head) noexcept {
  std::uint64_t first = 0;
  std::memcpy(&first, &head, 8);
  std::memcpy(cells + 8, reinterpret_cast<const std::uint8_t*>(&head) + 8, sizeof head - 8);
  // Release pairs with the acquire in front(): who sees the size sees the record.
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(cells), first, __ATOMIC_RELEASE);
}

bool RecordRing::has_room(std::uint32_t frames) const noexcept {
  const std::uint64_t used =
      __atomic_load_n(&tail_, __ATOMIC_RELAXED) - __atomic_load_n(&head_, __ATOMIC_RELAXED);
  return used + std::uint64_t{2} * cells_for(body_bytes(frames, true)) <= kCells / 4 * 3;
}

bool RecordRing::put_alloc(RecordHead head, const AllocBody& body) noexcept {
  const std::size_t frames = std::min<std::size_t>(body.frames.size(), kMostFrames);
  head.has_label = body.label != nullptr;
  head.frames = static_cast<std::uint16_t>(frames);
  head.kind = RecordKind::kAlloc;
  head.cells = cells_for(body_bytes(frames, head.has_label));
  std::uint8_t* cells = claim(head.cells, kCells / 4 * 3);
  if (cells == nullptr) return false;
  Body out(cells);
  out.write(&body.task, 8);
  out.write(&body.span, 8);
  if (head.has_label) out.write(body.label, sizeof *body.label);
  out.write(body.frames.data(), frames * 8);
  publish(cells, head);
  return true;
}

bool RecordRing::put_free(const RecordHead& head) noexcept {
  RecordHead own = head;
  own.kind = RecordKind::kFree;
  own.cells = 1;
  std::uint8_t* cells = claim(1, kCells);
  if (cells == nullptr) return false;
  publish(cells, own);
  return true;
}

bool RecordRing::front(Record* record) noexcept {
  for (;;) {
    std::uint8_t* cells = cell(head_);
    const std::uint64_t first =
        __atomic_load_n(reinterpret_cast<std::uint64_t*>(cells), __ATOMIC_ACQUIRE);
    if (first == 0) return false;
    std::memcpy(&record->head, &first, 8);
    std::memcpy(reinterpret_cast<std::uint8_t*>(&record->head) + 8, cells + 8,
                sizeof record->head - 8);
    if (record->head.kind == RecordKind::kPad) {
      pop();
      continue;
    }
    if (record->head.kind == RecordKind::kAlloc) {
      Body in(cells);
      in.read(&record->task, 8);
      in.read(&record->span, 8);
      record->label.name_bytes = 0;
      if (record->head.has_label) in.read(&record->label, sizeof record->label);
      in.read(record->frames, std::size_t{record->head.frames} * 8);
    }
    return true;
  }
}

void RecordRing::pop() noexcept {
  RecordHead head{};
  std::memcpy(&head, cell(head_), 8);
  for (std::uint32_t i = 0; i < head.cells; ++i) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(cell(head_ + i)), 0, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&head_, head_ + head.cells, __ATOMIC_RELEASE);
}

void RecordRing::drop_published() noexcept {
  const std::uint64_t end = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
  while (head_ < end &&
         __atomic_load_n(reinterpret_cast<std::uint64_t*>(cell(head_)), __ATOMIC_ACQUIRE) != 0) {
    pop();
  }
}

bool RecordRing::is_empty() const noexcept {
  return head_ == __atomic_load_n(&tail_, __ATOMIC_RELAXED);
}

}  // namespace dial9::heap
