// Bursts that the collector hasn't seen yet: a thread that has filled a chunk counts what is in it
// against what the budget allows between two of the collector's passes, and thins the classes
// itself, at once, where that is used up. Strongest property: nothing of it is on the warm path,
// nobody waits (a thread that finds another one at it goes on), and each change of the rates lies
// in the arena before the first event that was kept under it. Spec: docs/spec/recorder.md,
// "Budget"; why: docs/adr/0004-governor.md.
//
//   thread: chunk full ─► charge_gate ─► spent beyond ─► ShedRaise in the arena ─► publish_shedding
//   collector, each pass: take the raises into its books ─► drain ─► decide ─► pass_gate
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "recorder/arena.h"
#include "recorder/governor.h"
#include "recorder/shed_class.h"

namespace dial9::internal {

// So much of the budget may be spent between two passes beyond what the time between them allows.
inline constexpr std::uint64_t kGateDepthNs = kGovernorPeriodNs;
// Each further piece of this size is a level.
inline constexpr std::uint64_t kGateLevelNs = kGateDepthNs / 8;

// Pure: which level the rates must have where so much of the budget, in its own time, was spent
// since the last pass. 0: none.
std::uint32_t gate_level(std::uint64_t spent_ns, std::uint64_t elapsed_ns);
// Pure: level by level the class whose turn it is is thinned to a quarter, in the order of shedding
// and to its limits (kKeepLimits).
KeepOneIn thinned(const KeepOneIn& keep, std::uint32_t levels);

// Only one at a time changes the rates; whoever finds it taken goes on, or comes again.
class RatesHold {
 public:
  RatesHold() noexcept;
  ~RatesHold();
  RatesHold(const RatesHold&) = delete;
  RatesHold& operator=(const RatesHold&) = delete;
  explicit operator bool() const noexcept { return is_held_; }

 private:
  bool is_held_;
};

// --- Threads

// Before the thread closes its chunk. Charges what no pass of the collector has seen of it, and
// raises the rates where that is due. Async-signal-safe inside a record call. Cost: two clock reads
// where a budget is set, else two loads; a raise, at most kMostRaises between two passes, sums the
// counts of the threads that shed.
void charge_gate(Arena& arena, ChunkControl& control) noexcept;

// --- The collector's

// The rates that hold from now on: what raises begin with. With a hold.
void open_gate(const GovernorBudget& budget, const ProducerCosts& costs,
               const KeepOneIn& keep) noexcept;
// No thread raises anything from now on.
void close_gate() noexcept;
// What was recorded so far is in the collector's own books.
void pass_gate() noexcept;
// The time that the gate goes by. Async-signal-safe.
std::uint64_t gate_now_ns() noexcept;
// Tests: another one; null: the events' clock.
using GateClock = std::uint64_t (*)() noexcept;
void set_gate_clock(GateClock now_ns) noexcept;

}  // namespace dial9::internal
