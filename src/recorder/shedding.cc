// See shedding.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/shedding.h"

#include <algorithm>
#include <cmath>

#include "dial9/internal/field_traits.h"
#include "dial9/runtime.h"
#include "recorder/recording_state.h"

namespace dial9::internal {
namespace {

// Counts of the units that one thread decided about. Written by its owner alone, but for the first
// one, which threads share that found none free, or can't give theirs back.
struct alignas(64) Slot {
  std::uint32_t is_taken;
  std::uint64_t kept[kShedClasses];
  std::uint64_t shed[kShedClasses];
};
constexpr std::size_t kSlots = 256;
constinit Slot g_slots[kSlots]{};
constinit Slot g_scratch_slot{};
// A bit for each slot that was ever taken: a sum is over those alone, since a host's thread may
// have to wait for it (burst_gate.h).
constinit std::uint64_t g_used_slots[kSlots / 64]{};

// One writer at a time (RatesHold). A thread may mix two windows for one decision, which is then as
// good as one of either.
struct Policy {
  std::uint32_t window;
  std::uint32_t session;                  // counts how often shedding has begun
  std::uint32_t threshold[kShedClasses];  // a task is kept whose hash is below or equal
  float one_in[kShedClasses];
};
constinit Policy g_policy{};

// The block that a thread is in: `left` units of it to come, of which the one that leaves
// `keep_at` behind it is kept.
struct Block {
  std::uint32_t left;
  std::uint32_t keep_at;
  float debt;  // of block lengths, which are whole numbers, against N
};
struct ThreadShedding {
  Slot* slot;
  std::uint64_t random;
  std::uint32_t window;
  bool is_exempt;
  struct Pair {
    std::uint32_t session;
    bool is_shed;
  } poll, park;
  Block blocks[kShedClasses];
};
__thread ThreadShedding t_shedding __attribute__((tls_model("initial-exec"))) = {};

std::uint64_t mix(std::uint64_t x) noexcept {
  x ^= x >> 32;
  x *= 0xD6E8'FEB8'6659'FD93;
  x ^= x >> 32;
  x *= 0xD6E8'FEB8'6659'FD93;
  return x ^ x >> 32;
}

std::uint32_t next_random(ThreadShedding& t) noexcept {
  t.random += 0x9E37'79B9'7F4A'7C15;
  return static_cast<std::uint32_t>(mix(t.random) >> 32);
}

void note_used(const Slot& slot) noexcept {
  const auto index = static_cast<std::size_t>(&slot - g_slots);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  std::uint64_t& word = g_used_slots[index / 64];
  if ((__atomic_load_n(&word, __ATOMIC_RELAXED) & bit) == 0) {
    __atomic_fetch_or(&word, bit, __ATOMIC_RELAXED);
  }
}

Slot* take_slot(const ThreadShedding& t) noexcept {
  const std::size_t start = reinterpret_cast<std::uintptr_t>(&t) / 64 % (kSlots - 1);
  for (std::size_t i = 0; i < kSlots - 1; ++i) {
    Slot& slot = g_slots[1 + (start + i) % (kSlots - 1)];
    std::uint32_t none = 0;
    // Acquire pairs with the release in leave_shed_slot(): the next owner goes on from its counts.
    if (__atomic_load_n(&slot.is_taken, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&slot.is_taken, &none, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      note_used(slot);
      return &slot;
    }
  }
  return &g_slots[0];
}

ThreadShedding& this_thread() noexcept {
  ThreadShedding& t = t_shedding;
  if (__builtin_expect(t.slot == nullptr, 0)) {
    // A thread may record nothing at all, and only ever be asked: watched from here on. One that
    // can't be counts in the slot that is never given back.
    t.slot = watch_thread_exit() ? take_slot(t) : &g_slots[0];
    t.random = mix(reinterpret_cast<std::uintptr_t>(&t) ^ read_ticks());
  }
  return t;
}

void count(std::uint64_t& counter, bool is_shared) noexcept {
  if (is_shared) {
    __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    return;
  }
  __atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

void begin_block(ThreadShedding& t, Block& block, float one_in) noexcept {
  const float wanted = one_in + block.debt;
  const float length = std::max(1.0F, std::floor(wanted));
  block.debt = wanted - length;
  block.left = static_cast<std::uint32_t>(length);
  block.keep_at = static_cast<std::uint32_t>(std::uint64_t{next_random(t)} * block.left >> 32);
}

bool keeps_next_of_block(ThreadShedding& t, std::size_t c) noexcept {
  const std::uint32_t window = __atomic_load_n(&g_policy.window, __ATOMIC_RELAXED);
  if (__builtin_expect(window != t.window, 0)) {
    t.window = window;
    for (Block& block : t.blocks) block.left = 0;
  }
  Block& block = t.blocks[c];
  if (block.left == 0) {
    float one_in = 1;
    __atomic_load(&g_policy.one_in[c], &one_in, __ATOMIC_RELAXED);
    begin_block(t, block, one_in);
  }
  return --block.left == block.keep_at;
}

// Spawns and terminations must agree, however far they are apart: their window is always 0.
bool keeps_task(std::size_t c, std::uint64_t task) noexcept {
  const bool is_lasting = c == static_cast<std::size_t>(ShedClass::kTasks);
  const std::uint64_t window = is_lasting ? 0 : __atomic_load_n(&g_policy.window, __ATOMIC_RELAXED);
  const auto hash = static_cast<std::uint32_t>(mix(task ^ mix(window) << 1) >> 32);
  return hash <= __atomic_load_n(&g_policy.threshold[c], __ATOMIC_RELAXED);
}

// What began last on the thread: a later shedding must not take it for its own.
bool keeps_begin(ThreadShedding::Pair& pair, ShedClass shed_class, std::uint64_t task) noexcept {
  const bool keeps = keeps_unit(shed_class, task);
  pair = {__atomic_load_n(&g_policy.session, __ATOMIC_RELAXED), !keeps};
  return keeps;
}

bool keeps_end(ThreadShedding::Pair& pair) noexcept {
  const bool is_shed =
      pair.is_shed && pair.session == __atomic_load_n(&g_policy.session, __ATOMIC_RELAXED);
  pair.is_shed = false;
  return !is_shed;
}

struct NamedRole {
  std::string_view name;
  ShedRole role;
};
// Every other event is a user's.
constexpr NamedRole kRoles[] = {
    {"WakeEventEvent", ShedRole::kWake},       {"WorkerParkEvent", ShedRole::kPark},
    {"WorkerUnparkEvent", ShedRole::kUnpark},  {"PollStartEvent", ShedRole::kPollStart},
    {"PollEndEvent", ShedRole::kPollEnd},      {"TaskSpawnEvent", ShedRole::kTask},
    {"TaskTerminateEvent", ShedRole::kTask},   {"TaskDumpEvent", ShedRole::kNever},
    {"RuntimeMetricsEvent", ShedRole::kNever}, {"BlockingCallEvent", ShedRole::kNever},
    {"LockWaitEvent", ShedRole::kNever},       {"OffCpuEvent", ShedRole::kNever},
    {"WorkerSchedEvent", ShedRole::kNever},    {"ProcessResourceUsageEvent", ShedRole::kNever},
    {"TcpAcceptQueueEvent", ShedRole::kNever}, {"CpuSampleEvent", ShedRole::kNever},
    {"SymbolTableEntry", ShedRole::kNever},    {"AllocEvent", ShedRole::kNever},
    {"FreeEvent", ShedRole::kNever},           {"MemoryProfileOverflowEvent", ShedRole::kNever},
    {"ClockSyncEvent", ShedRole::kNever},      {"SegmentMetadataEvent", ShedRole::kNever},
    {"RecorderLossEvent", ShedRole::kNever},   {"RecorderShedEvent", ShedRole::kNever},
    {"RecorderBillEvent", ShedRole::kNever},   {"CrashEvent", ShedRole::kNever},
    {"SignalSurvivedEvent", ShedRole::kNever},
};

}  // namespace

ShedRole shed_role_of(std::string_view event_name) noexcept {
  if (event_name.starts_with("SpanEnter:")) return ShedRole::kSpanEnter;
  if (event_name.starts_with("SpanExit:")) return ShedRole::kNever;  // its enter was kept
  const auto* const found =
      std::find_if(std::begin(kRoles), std::end(kRoles),
                   [&](const NamedRole& known) { return known.name == event_name; });
  return found == std::end(kRoles) ? ShedRole::kEvent : found->role;
}

bool keeps_unit(ShedClass shed_class, std::uint64_t task) noexcept {
  ThreadShedding& t = this_thread();
  if (t.is_exempt) return true;
  const auto c = static_cast<std::size_t>(shed_class);
  const bool is_shared = t.slot == &g_slots[0];
  const bool keeps = task != 0 ? keeps_task(c, task) : keeps_next_of_block(t, c);
  count(keeps ? t.slot->kept[c] : t.slot->shed[c], is_shared);
  return keeps;
}

bool keeps_event(EventType& type, std::uint64_t task) noexcept {
  auto role = static_cast<ShedRole>(__atomic_load_n(&type.shed_role, __ATOMIC_RELAXED));
  if (role == ShedRole::kUnknown) {  // racing threads store the same
    role = shed_role_of(type.name);
    __atomic_store_n(&type.shed_role, static_cast<std::uint8_t>(role), __ATOMIC_RELAXED);
  }
  switch (role) {
    case ShedRole::kEvent:
      return keeps_unit(ShedClass::kEvents, 0);
    case ShedRole::kWake:
      return keeps_unit(ShedClass::kWakes, task);
    case ShedRole::kPark:
      return keeps_begin(t_shedding.park, ShedClass::kParks, 0);
    case ShedRole::kUnpark:
      return keeps_end(t_shedding.park);
    case ShedRole::kPollStart:
      return keeps_begin(t_shedding.poll, ShedClass::kPolls, task);
    case ShedRole::kPollEnd:
      return keeps_end(t_shedding.poll);
    case ShedRole::kSpanEnter:
      return keeps_unit(ShedClass::kSpans, runtime::polled_task());
    case ShedRole::kTask:
      return keeps_unit(ShedClass::kTasks, task);
    case ShedRole::kUnknown:
    case ShedRole::kNever:
      break;
  }
  return true;
}

void publish_shedding(const KeepOneIn& keep_one_in, bool is_shedding) noexcept {
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    const double one_in = is_shedding ? keep_one_in[c] : 1;
    auto narrow = static_cast<float>(one_in);
    const double threshold = std::min(4294967295.0, 4294967296.0 / one_in);
    // Release: who keeps an event under them has its rates in the arena (burst_gate.cc).
    __atomic_store_n(&g_policy.threshold[c], static_cast<std::uint32_t>(threshold),
                     __ATOMIC_RELEASE);
    __atomic_store(&g_policy.one_in[c], &narrow, __ATOMIC_RELEASE);
  }
  __atomic_fetch_add(&g_policy.window, 1, __ATOMIC_RELAXED);
  if (is_shedding && !internal::is_shedding()) {
    __atomic_fetch_add(&g_policy.session, 1, __ATOMIC_RELAXED);
  }
  mark_epoch(is_shedding ? kSheddingBit : 0);
}

ShedCounts shed_counts() noexcept {
  ShedCounts sum;
  for (std::size_t i = 0; i < kSlots; ++i) {
    const std::uint64_t used = __atomic_load_n(&g_used_slots[i / 64], __ATOMIC_RELAXED);
    if (i != 0 && (used >> (i % 64) & 1) == 0) continue;
    const Slot& slot = g_slots[i];
    for (std::size_t c = 0; c < kShedClasses; ++c) {
      sum.kept[c] += __atomic_load_n(&slot.kept[c], __ATOMIC_RELAXED);
      sum.shed[c] += __atomic_load_n(&slot.shed[c], __ATOMIC_RELAXED);
    }
  }
  return sum;
}

std::size_t shed_slots_taken() noexcept {
  return static_cast<std::size_t>(std::count_if(
      std::begin(g_slots), std::end(g_slots),
      [](const Slot& slot) { return __atomic_load_n(&slot.is_taken, __ATOMIC_RELAXED) != 0; }));
}

void exempt_this_thread() noexcept { t_shedding.is_exempt = true; }

bool is_exempt_thread() noexcept { return t_shedding.is_exempt; }

ShedScratch::ShedScratch() noexcept : slot_(t_shedding.slot), is_exempt_(t_shedding.is_exempt) {
  t_shedding.slot = &g_scratch_slot;
  t_shedding.is_exempt = false;
}

ShedScratch::~ShedScratch() {
  t_shedding.slot = static_cast<Slot*>(slot_);
  t_shedding.is_exempt = is_exempt_;
}

void leave_shed_slot() noexcept {
  Slot* slot = t_shedding.slot;
  t_shedding.slot = nullptr;
  if (slot == nullptr || slot == &g_slots[0]) return;
  __atomic_store_n(&slot->is_taken, 0, __ATOMIC_RELEASE);
}

}  // namespace dial9::internal
