// See burst_gate.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/burst_gate.h"

#include <algorithm>
#include <array>

#include "recorder/fork_child.h"
#include "recorder/recording_state.h"
#include "recorder/shedding.h"

namespace dial9::internal {
namespace {

constexpr double kStep = 4;                  // a class is thinned to a quarter a level
constexpr std::uint32_t kMostLevel = 1'000;  // beyond what thins all classes to their limits

using Costs = std::array<double, kGovernedCosts>;

struct Gate {
  // The collector's, read by all. Nanoseconds of the budget that an event and a byte take; 0: no
  // limit.
  alignas(64) Costs of_event;
  Costs of_byte;
  std::uint64_t pass_ns;
  // Threads add to it when a chunk is full.
  alignas(64) std::array<std::uint64_t, kGovernedCosts> spent_ns;
  // Under the hold.
  alignas(64) KeepOneIn base;
  KeepOneIn keep;
  std::uint32_t level;  // relaxed outside: whether a raise is worth asking for the hold
};
constinit Gate g_gate{};

// process_number() of who changes the rates; 0: nobody. What a parent's thread held as this process
// was forked from it is free.
constinit std::uint32_t g_holder = 0;

constinit GateClock g_clock = nullptr;

double load(const double& from) noexcept {
  double value = 0;
  __atomic_load(&from, &value, __ATOMIC_RELAXED);
  return value;
}

void store(double& to, double value) noexcept { __atomic_store(&to, &value, __ATOMIC_RELAXED); }

// Adds to what was spent, and says what was before: the chunk at hand isn't held against the
// thread, which may have filled it over any time.
std::uint64_t spend(std::size_t cost, std::uint64_t events, std::uint64_t bytes) noexcept {
  const double ns = load(g_gate.of_event[cost]) * static_cast<double>(events) +
                    load(g_gate.of_byte[cost]) * static_cast<double>(bytes);
  if (ns < 1) return 0;
  return __atomic_fetch_add(&g_gate.spent_ns[cost], static_cast<std::uint64_t>(ns),
                            __ATOMIC_RELAXED);
}

bool is_gate_open() noexcept {
  return load(g_gate.of_event[kCpuCost]) > 0 || load(g_gate.of_byte[kBytesCost]) > 0;
}

void raise(Arena& arena, std::uint32_t level) noexcept {
  const RatesHold hold;
  if (!hold || level <= __atomic_load_n(&g_gate.level, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&g_gate.level, level, __ATOMIC_RELAXED);
  ShedRaises& raises = arena.header().raises;
  const std::uint32_t index = raises.count;
  if (index == kMostRaises) return;
  // Whoever takes the last place thins as far as it goes: nobody can after it, until the next pass.
  const KeepOneIn keep = thinned(g_gate.base, index + 1 == kMostRaises ? kMostLevel : level);
  if (keep == g_gate.keep) return;  // there is nothing left to thin
  ShedRaise& raise = raises.list[index];
  raise.counts = shed_counts();
  raise.keep_one_in = g_gate.keep = keep;
  raise.at_ns = now_ns();
  // Release: a reader from outside that sees the count sees what it counts.
  __atomic_store_n(&raises.count, index + 1, __ATOMIC_RELEASE);
  publish_shedding(keep, true);
  // The recorder has ended meanwhile, and has said "keep all" already.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!is_gate_open()) publish_shedding(kKeepAll, false);
}

}  // namespace

std::uint32_t gate_level(std::uint64_t spent_ns, std::uint64_t elapsed_ns) {
  const std::uint64_t allowed_ns = elapsed_ns + kGateDepthNs;
  if (spent_ns <= allowed_ns) return 0;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(1 + (spent_ns - allowed_ns) / kGateLevelNs, kMostLevel));
}

KeepOneIn thinned(const KeepOneIn& keep, std::uint32_t levels) {
  KeepOneIn out = keep;
  for (; levels != 0; --levels) {
    double* next = nullptr;
    double most = 0;
    for (const double limit : kKeepLimits) {
      for (std::size_t c = 0; c < kShedClasses && next == nullptr; ++c) {
        if (out[c] < limit) next = &out[c];
      }
      most = limit;
      if (next != nullptr) break;
    }
    if (next == nullptr) break;
    *next = std::min(*next * kStep, most);
  }
  return out;
}

RatesHold::RatesHold() noexcept : is_held_(false) {
  const std::uint32_t own = process_number();
  std::uint32_t holder = __atomic_load_n(&g_holder, __ATOMIC_RELAXED);
  is_held_ = holder != own && __atomic_compare_exchange_n(&g_holder, &holder, own, false,
                                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

RatesHold::~RatesHold() {
  if (is_held_) __atomic_store_n(&g_holder, 0U, __ATOMIC_RELEASE);
}

void charge_gate(Arena& arena, ChunkControl& control) noexcept {
  if (!is_gate_open() || is_exempt_thread()) return;
  const std::uint64_t committed = __atomic_load_n(&control.producer.committed, __ATOMIC_RELAXED);
  const std::uint64_t seen = arena.seen(arena.index_of(control));
  const std::uint32_t events =
      static_cast<std::uint32_t>(committed >> 32) - static_cast<std::uint32_t>(seen >> 32);
  const std::uint32_t bytes =
      static_cast<std::uint32_t>(committed) - static_cast<std::uint32_t>(seen);
  std::uint64_t spent_ns = 0;
  for (std::size_t cost = 0; cost < kGovernedCosts; ++cost) {
    spent_ns = std::max(spent_ns, spend(cost, events, bytes));
  }
  const std::uint64_t now = gate_now_ns();
  const std::uint64_t pass = __atomic_load_n(&g_gate.pass_ns, __ATOMIC_RELAXED);
  const std::uint32_t level = gate_level(spent_ns, now - std::min(now, pass));
  if (level > __atomic_load_n(&g_gate.level, __ATOMIC_RELAXED)) raise(arena, level);
}

void open_gate(const GovernorBudget& budget, const ProducerCosts& costs,
               const KeepOneIn& keep) noexcept {
  pass_gate();  // what made the rates what they are isn't held against them again
  g_gate.base = g_gate.keep = keep;
  __atomic_store_n(&g_gate.level, 0U, __ATOMIC_RELAXED);
  if (budget.max_cpu_ns > 0) {
    store(g_gate.of_event[kCpuCost], costs.event_ns * 1e9 / budget.max_cpu_ns);
  }
  if (budget.max_bytes > 0) store(g_gate.of_byte[kBytesCost], 1e9 / budget.max_bytes);
}

void close_gate() noexcept {
  store(g_gate.of_event[kCpuCost], 0);
  store(g_gate.of_byte[kBytesCost], 0);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // pairs with raise(): "keep all" comes last
}

void pass_gate() noexcept {
  __atomic_store_n(&g_gate.pass_ns, gate_now_ns(), __ATOMIC_RELAXED);
  for (std::uint64_t& spent : g_gate.spent_ns) __atomic_store_n(&spent, 0U, __ATOMIC_RELAXED);
}

std::uint64_t gate_now_ns() noexcept {
  const GateClock clock = __atomic_load_n(&g_clock, __ATOMIC_RELAXED);
  return clock == nullptr ? now_ns() : clock();
}

void set_gate_clock(GateClock now_ns) noexcept {
  __atomic_store_n(&g_clock, now_ns, __ATOMIC_RELAXED);
}

}  // namespace dial9::internal
