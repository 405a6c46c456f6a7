// Keep or shed, on the host's threads: the cold path that every event takes while something is
// shed. Strongest property: what belongs together goes together. A start is shed with its end; of a
// task, within one window, all wakes and polls are kept or none; and every unit that was asked
// about is counted, kept or shed, to the unit.
//
//   collector, a raise ── publish_shedding ──► keep one in N by class, window ──► threads
//   collector ◄── shed_counts ─────── slots, one a thread, plain stores
//
// A window is a decision's life: which tasks are kept is drawn anew in each, so that few tasks that
// live long don't stand for all. Units without a task are kept by blocks: one of each N in a row,
// at a random place, whatever pattern the program has. Spec: docs/spec/recorder.md, "Budget".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dial9/internal/thread_buffer.h"
#include "recorder/shed_class.h"

namespace dial9::internal {

// Set in the epoch while something is shed: no thread's epoch has it, so that each event takes the
// cold path, and nothing else is tested while all is kept.
inline constexpr std::uint32_t kSheddingBit = 0x8000'0000;

inline bool is_shedding() noexcept { return (recording_epoch() & kSheddingBit) != 0; }

// What an event type is, by its name: alone, or the begin or end of something of its class.
enum class ShedRole : std::uint8_t {
  kUnknown,  // not looked up yet
  kNever,
  kEvent,
  kWake,
  kPark,
  kUnpark,
  kPollStart,
  kPollEnd,
  kSpanEnter,
  kTask,
};
ShedRole shed_role_of(std::string_view event_name) noexcept;

// Decides for one unit and counts it; call once a unit, and only while is_shedding(). `task` 0:
// none. Async-signal-safe, if not interrupted by another of the same class on its thread.
[[gnu::cold]] bool keeps_unit(ShedClass shed_class, std::uint64_t task) noexcept;

// The same for an event, by its type, in which its role is remembered. The end of a poll or a park
// follows its begin, which was the last of its kind on this thread; one that began before anything
// was shed is kept.
[[gnu::cold]] bool keeps_event(EventType& type, std::uint64_t task) noexcept;

// --- The collector's

// A new window with these rates. Turns the cold path on or off. Async-signal-safe; one at a time
// (RatesHold, burst_gate.h).
void publish_shedding(const KeepOneIn& keep_one_in, bool is_shedding) noexcept;
// All that was decided since the process began.
ShedCounts shed_counts() noexcept;
// Threads that count in a slot of their own, at most 255.
std::size_t shed_slots_taken() noexcept;
// Whatever the calling thread records is kept: the recorder's own thread.
void exempt_this_thread() noexcept;
bool is_exempt_thread() noexcept;
// While it lives, what its thread decides is counted nowhere and nothing is exempt: for measuring.
class ShedScratch {
 public:
  ShedScratch() noexcept;
  ~ShedScratch();
  ShedScratch(const ShedScratch&) = delete;
  ShedScratch& operator=(const ShedScratch&) = delete;

 private:
  void* slot_;
  bool is_exempt_;
};
// The thread's slot goes to another. At its end, after its last event.
void leave_shed_slot() noexcept;

}  // namespace dial9::internal
