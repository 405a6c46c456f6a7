// What of the arena is in segments already, kept in the mapping itself so that it outlives the
// process. Strongest property: one store decides it for a whole batch: a process that is killed at
// any instruction leaves each event either in its segment or in its chunk, never in both or none.
//
//   position   bytes given to segments since the start; each segment holds [base, end)
//   confirmed  up to where they were written. A chunk that was staged has `staged_to` and the
//              position at which that batch ends: it counts from the moment it is confirmed
//
// What lies in the active segment beyond `confirmed` is the batch that a kill cut short: recovery
// cuts it off, and finds its events in the chunks. Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

inline constexpr std::uint32_t kPrologueBytes = 8 << 10;
inline constexpr std::uint64_t kOpenEnd = ~std::uint64_t{0};

// The last two segments, by index modulo 2.
struct JournalSegment {
  std::uint64_t number;  // index + 1; 0: none, or being written
  std::uint64_t base;    // position of its first byte
  std::uint64_t end;     // kOpenEnd: up to what is confirmed
};
// One cause of loss: how many of it were told of in segments.
struct JournalTold {
  std::uint64_t told;
  std::uint64_t staged;           // told, once `staged_position` is confirmed
  std::uint64_t staged_position;  // 0: nothing staged
  std::uint64_t first_ns;         // of what is staged
  std::uint64_t last_ns;
};
// A loss by the collector's own hand, on its way into the counter.
struct JournalLoss {
  std::uint64_t position;  // counts once this is confirmed; 0: none
  std::uint64_t target;    // what the counter of stripe 0 will be
  std::uint64_t cause;
};
// A stream with the clock pair and the metadata of the run, as at the head of each segment.
struct JournalPrologue {
  std::uint32_t size;
  std::uint32_t check;  // check_bytes() over the bytes
  std::uint8_t bytes[kPrologueBytes - 8];
};
// What recovery has done with this file; written by recovery, in a file of a dead process.
struct JournalRecovery {
  std::uint64_t state;  // kNotRecovered, kRecoveredWaits
  std::uint64_t index;  // of the segment that waits to be renamed
};
enum RecoveryState : std::uint64_t { kNotRecovered = 0, kRecoveredWaits = 1 };

struct JournalPage {
  std::uint64_t confirmed;
  std::uint64_t prologue;  // 0: none yet; else the valid slot is prologue % 2
  JournalSegment segments[2];
  JournalLoss loss;
  JournalRecovery recovery;
  JournalTold told[kLossCauses];
};
static_assert(sizeof(JournalPage) <= 4096);
inline constexpr std::uint64_t kJournalBytes = 4096 + 2 * sizeof(JournalPrologue);

std::uint32_t check_bytes(std::span<const std::uint8_t> bytes);

// The writing side: the collector's thread only. Every call is a few stores into the mapping, in
// the order that makes each of their prefixes readable.
class Journal {
 public:
  // `page` is followed by the two prologues.
  explicit Journal(JournalPage* page) : page_(page) {}

  std::uint64_t confirmed() const { return page_->confirmed; }
  // Before the segment's file is made.
  void begin_segment(std::uint64_t index, std::uint64_t base);
  // Everything up to here was written; or lost, if lose() said so before.
  void confirm(std::uint64_t position);
  // The segment holds nothing from `end` on, whatever is confirmed.
  void end_segment(std::uint64_t index, std::uint64_t end);

  // `total` of the cause are told of, once `position` is confirmed.
  void stage_told(LossCause cause, std::uint64_t total, std::uint64_t position,
                  std::uint64_t first_ns, std::uint64_t last_ns);
  // Staged reports that were confirmed are told; to be called after confirm().
  void settle_told();
  // What is told, staged or not, is `total` now: a report came to nothing.
  void untell(LossCause cause, std::uint64_t total);

  // The counter of stripe 0 is to become `target`, once `position` is confirmed.
  void begin_loss(LossCause cause, std::uint64_t target, std::uint64_t position);
  void end_loss();

  // Keeps the last one where this is too long.
  void remember_prologue(std::span<const std::uint8_t> stream);

 private:
  JournalPage* page_;
};

// The two marks that a staged chunk bears, and what they amount to.
inline std::uint64_t effective_drained(std::uint64_t drained, std::uint64_t staged_to,
                                       std::uint64_t staged_position, std::uint64_t confirmed) {
  return staged_position != 0 && staged_position <= confirmed ? staged_to : drained;
}

}  // namespace dial9::internal
