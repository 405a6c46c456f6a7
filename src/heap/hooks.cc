// See hooks.h.
// SPDX-License-Identifier: Apache-2.0
#include "heap/hooks.h"

#include <errno.h>
#include <sys/mman.h>

#include "dial9/internal/thread_buffer.h"
#include "heap/draws.h"
#include "recorder/own_cost.h"
#include "recorder/recording_state.h"
#include "sources/caller_stack.h"

namespace dial9::heap {

constinit Gate g_gate = {kOff, 0, 0, false};
constinit Memory g_memory = {};
__thread Thread t_thread __attribute__((tls_model("initial-exec"))) = {};

namespace {

// A request beyond it fails, in every allocator.
constexpr std::size_t kMostBytes = std::size_t{1} << 46;

void count(std::uint64_t& counter) noexcept { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); }

// Of this thread's draws: different in each thread, and after a fork.
std::uint64_t seed_of_thread() noexcept {
  const std::uint64_t asked = g_gate.seed;
  if (asked != 0) return asked + internal::this_tid();
  return reinterpret_cast<std::uintptr_t>(&t_thread) ^ internal::now_ns() << 20 ^
         internal::read_ticks();
}

// The size that was counted down already is the first of the new generation's.
void begin_generation(Thread& thread, std::int64_t floor, std::size_t size) noexcept {
  if (thread.random == 0) thread.random = seed_of_thread();
  thread.generation = floor;
  thread.rate_bytes = __atomic_load_n(&g_gate.rate_bytes, __ATOMIC_RELAXED);
  thread.left = floor + static_cast<std::int64_t>(draw_gap(&thread.random, thread.rate_bytes)) -
                static_cast<std::int64_t>(size);
}

[[gnu::noinline]] void record_with_stack(RecordHead head, const void* caller) noexcept {
  std::uint64_t room[RecordRing::kMostFrames + internal::kMostOwnFrames];
  const internal::CallerStack stack = internal::stack_of_caller(caller, room);
  internal::SampleContext context;
  internal::read_sample_context(&context);
  head.method = stack.method;
  head.is_truncated = stack.is_truncated;
  const bool tracks = __atomic_load_n(&g_gate.tracks_live, __ATOMIC_RELAXED);
  head.is_tracked = tracks && g_memory.live.insert({head.address, head.size, head.at_ns});
  if (tracks && !head.is_tracked) count(g_memory.untracked);
  const AllocBody body = {context.task, context.span,
                          context.label.has_value() ? &context.label : nullptr, stack.frames};
  if (g_memory.ring.put_alloc(head, body)) return;
  count(g_memory.lost_samples);
  LiveEntry entry{};
  if (head.is_tracked) {
    g_memory.live.remove(reinterpret_cast<const void*>(head.address), &entry);
  }
}

}  // namespace

bool wipe_memory_on_fork() noexcept {
  return ::madvise(&g_memory, sizeof g_memory, MADV_WIPEONFORK) == 0;
}

bool crosses(std::size_t size) noexcept {
  Thread& thread = t_thread;
  if (size > kMostBytes || thread.is_own) {
    thread.left = static_cast<std::int64_t>(static_cast<std::uint64_t>(thread.left) + size);
    return false;
  }
  // Acquire: the rate of this generation (pairs with the release of whoever turns it on).
  const std::int64_t floor = __atomic_load_n(&g_gate.floor, __ATOMIC_ACQUIRE);
  if (floor == kOff) return false;
  if (thread.generation != floor) begin_generation(thread, floor, size);
  if (thread.rate_bytes == 1) {
    thread.left = floor - 1;
    return internal::recording_epoch() != 0;
  }
  if (thread.left >= floor) return false;
  while (thread.left < floor) {
    thread.left += static_cast<std::int64_t>(draw_gap(&thread.random, thread.rate_bytes));
  }
  return internal::recording_epoch() != 0;
}

void record_alloc(const void* pointer, std::size_t size, const void* caller) noexcept {
  Thread& thread = t_thread;
  if (thread.is_inside || !g_memory.ring.has_room(RecordRing::kMostFrames)) {
    count(g_memory.lost_samples);
    return;
  }
  thread.is_inside = true;
  const int error = errno;
  RecordHead head{};
  head.at_ns = internal::now_ns();
  head.address = reinterpret_cast<std::uintptr_t>(pointer);
  head.size = size;
  head.extra = thread.rate_bytes;
  head.tid = internal::this_tid();
  record_with_stack(head, caller);
  __atomic_fetch_add(&g_memory.cost_ns, internal::sample_cost_ns(head.at_ns, internal::now_ns()),
                     __ATOMIC_RELAXED);
  errno = error;
  thread.is_inside = false;
}

TakenOut take_out(const void* pointer) noexcept {
  TakenOut taken{};
  switch (g_memory.live.remove(pointer, &taken.entry)) {
    case LiveSet::Removed::kEntry:
      taken.is_sample = true;
      taken.at_ns = internal::now_ns();
      break;
    case LiveSet::Removed::kUnknown:
      count(g_memory.lost_frees);
      break;
    case LiveSet::Removed::kNothing:
      break;
  }
  return taken;
}

void put_back(const TakenOut& taken) noexcept {
  if (taken.is_sample && !g_memory.live.insert(taken.entry)) count(g_memory.lost_frees);
}

void record_free(const TakenOut& taken) noexcept {
  if (!taken.is_sample) return;
  RecordHead head{};
  head.at_ns = taken.at_ns;
  head.address = taken.entry.address;
  head.size = taken.entry.size;
  head.extra = taken.entry.at_ns;
  head.tid = internal::this_tid();
  // What is freed while nothing is recorded seems alive afterwards: that is counted.
  if (internal::recording_epoch() == 0 || !g_memory.ring.put_free(head)) count(g_memory.lost_frees);
}

}  // namespace dial9::heap
