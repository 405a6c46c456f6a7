// What the functions that replace malloc and its family do around the real ones. Strongest
// property: an allocation that isn't a sample costs a subtraction and two comparisons, a free that
// isn't of one a multiplication and one byte; everything else is cold. No lock is waited for, and
// nothing here allocates or makes a system call but for a sample.
//
//   thread's `left` ──minus the size──► below the gate's floor? ─no─► the real malloc
//                                                  │yes: off, a new generation, or a sample
//
// Each time sampling begins the floor rises by kGeneration, above what any thread has left of the
// time before: so every thread draws anew at its next allocation, and none is asked to. A rate that
// changes meanwhile is taken up where the thread is in the cold path anyway: at its next sample, or
// where that would be far off, at a look before it.
// Spec: docs/spec/heap_samples.md, "Which allocations".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/live_set.h"
#include "heap/record_ring.h"

namespace dial9::heap {

inline constexpr std::int64_t kGeneration = std::int64_t{1} << 46;
inline constexpr std::int64_t kLastGeneration = (std::int64_t{1} << 17) - 1;
inline constexpr std::int64_t kOff = INT64_MIN;
inline constexpr std::uint64_t kMostRate = std::uint64_t{1} << 40;

struct alignas(64) Gate {
  std::int64_t floor;        // kOff, or the generation's number times kGeneration
  std::uint64_t rate_bytes;  // each thread takes it up at its next sample, or look
  std::uint64_t look_bytes;  // the largest gap to the next look
  std::uint64_t seed;        // 0: threads take what differs between them
  bool tracks_live;
};
extern Gate g_gate __attribute__((visibility("hidden")));

// What threads may spend on samples between two passes of the collector, in ns of the budget's own
// time. Who goes beyond raises the rate to kRaise times what it was, for all threads.
struct alignas(64) Allowance {
  double of_cpu_ns;  // that a ns of CPU time takes; 0: no limit
  double of_sample;  // that a sample's bytes take
  std::uint64_t pass_ns;
  std::uint64_t limit;            // of Memory::spent, if no time passed since the pass
  std::uint64_t most_rate_bytes;  // not beyond
};
extern Allowance g_allowance __attribute__((visibility("hidden")));
inline constexpr std::uint64_t kRaise = 4;
inline constexpr std::uint64_t kAllowanceNs = 50'000'000;
// Beyond it, each further one is a raise.
inline constexpr std::uint64_t kRaiseStepNs = 6'250'000;

// What a child of a fork finds zeroed. Page-aligned, so that the kernel can do it.
struct alignas(4096) Memory {
  LiveSet live;
  RecordRing ring;
  alignas(64) std::uint64_t lost_samples;
  std::uint64_t lost_frees;
  std::uint64_t untracked;
  std::uint64_t cost_ns;  // that samples took on their threads
  std::uint64_t spent;    // of the allowance
};
extern Memory g_memory __attribute__((visibility("hidden")));
// Asks the kernel for that. False: it is too old.
bool wipe_memory_on_fork() noexcept;

struct Thread {
  std::int64_t left;
  std::int64_t generation;
  std::uint64_t random;
  std::uint64_t rate_bytes;  // by which `left` was drawn
  bool is_look;              // where `left` ends isn't a sample: the thread looks at the rate
  bool is_inside;            // a sample is being recorded
  bool is_own;               // what it allocates now is the sampler's
};
extern __thread Thread t_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Counts an allocation down. True: look closer, with crosses().
inline bool is_due(std::size_t size) noexcept {
  const std::int64_t left =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(t_thread.left) - size);
  t_thread.left = left;
  return __builtin_expect(left < __atomic_load_n(&g_gate.floor, __ATOMIC_RELAXED), 0) ||
         __builtin_expect(static_cast<std::int64_t>(size) < 0, 0);
}

// Of the allocation of `size` bytes that was counted down just now: the rate, in bytes, at which it
// is a sample; 0: it is none.
std::uint64_t crosses(std::size_t size) noexcept;

// Records a sample, drawn at `rate_bytes`, that begins at `pointer`. Before its owner gets to know
// the pointer. `caller`: the address that the hook returns to, the first frame of the stack.
void record_alloc(const void* pointer, std::size_t size, std::uint64_t rate_bytes,
                  const void* caller) noexcept;

// --- Frees. Before the real one, after which the address may be anybody's.
inline bool may_be_sample(const void* pointer) noexcept {
  return __builtin_expect(g_memory.live.may_hold(pointer), 0);
}

// A sample that was taken out, and may be put back.
struct TakenOut {
  LiveEntry entry;
  std::uint64_t at_ns;
  bool is_sample;
};
TakenOut take_out(const void* pointer) noexcept;
void put_back(const TakenOut& taken) noexcept;
void record_free(const TakenOut& taken) noexcept;

}  // namespace dial9::heap
