// See hooks.h.
// SPDX-License-Identifier: Apache-2.0
#include "heap/hooks.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>

#include "dial9/internal/thread_buffer.h"
#include "heap/draws.h"
#include "recorder/burst_gate.h"
#include "recorder/own_cost.h"
#include "recorder/own_work.h"
#include "recorder/recording_state.h"
#include "sources/caller_stack.h"

namespace dial9::heap {

constinit Gate g_gate = {kOff, 0, kMostGap, 0, false};
constinit Allowance g_allowance = {};
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

std::uint64_t load(const std::uint64_t& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

// To the next sample, or to a look before it.
std::int64_t next_gap(Thread& thread) noexcept {
  const std::uint64_t gap = draw_gap(&thread.random, thread.rate_bytes);
  const std::uint64_t most = load(g_gate.look_bytes);
  thread.is_look = gap > most;
  return static_cast<std::int64_t>(thread.is_look ? most : gap);
}

// The size that was counted down already is the first of the new generation's.
void begin_generation(Thread& thread, std::int64_t floor, std::size_t size) noexcept {
  if (thread.random == 0) thread.random = seed_of_thread();
  thread.generation = floor;
  thread.rate_bytes = load(g_gate.rate_bytes);
  thread.left = floor + next_gap(thread) - static_cast<std::int64_t>(size);
}

// Whether a sample lies in what was counted down beyond the floor; draws the gap to the next one.
bool passes_sample(Thread& thread, std::int64_t floor) noexcept {
  if (thread.rate_bytes == 1) {
    thread.left = floor - 1;
    return true;
  }
  if (thread.left >= floor) return false;
  bool is_sample = !thread.is_look;
  // Gaps have no memory: of a large allocation at a small rate those within are of no interest.
  constexpr std::int64_t kGapsWithin = 32;
  thread.left =
      std::max(thread.left, floor - kGapsWithin * static_cast<std::int64_t>(thread.rate_bytes));
  while (thread.left < floor) {
    is_sample = is_sample || !thread.is_look;
    thread.left += next_gap(thread);
  }
  return is_sample;
}

// The next allocation is the first that is drawn at the new rate.
void take_up_rate(Thread& thread, std::int64_t floor) noexcept {
  const std::uint64_t rate = load(g_gate.rate_bytes);
  if (__builtin_expect(rate == thread.rate_bytes, 1)) return;
  thread.rate_bytes = rate;
  thread.left = floor - 1 + (rate == 1 ? 0 : next_gap(thread));
}

// Whoever finds the limit reached moves it, and raises the rate; others go on.
[[gnu::noinline]] void spend(std::uint64_t cost_ns) noexcept {
  double of_cpu_ns = 0;
  double of_sample = 0;
  __atomic_load(&g_allowance.of_cpu_ns, &of_cpu_ns, __ATOMIC_RELAXED);
  __atomic_load(&g_allowance.of_sample, &of_sample, __ATOMIC_RELAXED);
  const double ns = std::max(of_cpu_ns * static_cast<double>(cost_ns), of_sample);
  if (ns <= 0) return;
  const auto own = static_cast<std::uint64_t>(ns);
  const std::uint64_t spent = __atomic_add_fetch(&g_memory.spent, own, __ATOMIC_RELAXED);
  const std::uint64_t now_ns = internal::gate_now_ns();
  const std::uint64_t pass_ns = load(g_allowance.pass_ns);
  const std::uint64_t elapsed_ns = now_ns - std::min(now_ns, pass_ns);
  std::uint64_t limit = load(g_allowance.limit);
  if (spent <= limit + elapsed_ns) return;
  if (!__atomic_compare_exchange_n(&g_allowance.limit, &limit, spent - elapsed_ns + kRaiseStepNs,
                                   false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    return;
  }
  std::uint64_t rate = load(g_gate.rate_bytes);
  if (rate * kRaise > load(g_allowance.most_rate_bytes)) return;
  __atomic_compare_exchange_n(&g_gate.rate_bytes, &rate, rate * kRaise, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
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

std::uint64_t crosses(std::size_t size) noexcept {
  Thread& thread = t_thread;
  if (size > kMostBytes || thread.is_own) {
    thread.left = static_cast<std::int64_t>(static_cast<std::uint64_t>(thread.left) + size);
    return 0;
  }
  // Acquire: the rate of this generation (pairs with the release of whoever turns it on).
  const std::int64_t floor = __atomic_load_n(&g_gate.floor, __ATOMIC_ACQUIRE);
  if (floor == kOff) return 0;
  if (thread.generation != floor) begin_generation(thread, floor, size);
  if (thread.rate_bytes != 1 && thread.left >= floor) return 0;
  const std::uint64_t rate = thread.rate_bytes;
  const bool is_sample = passes_sample(thread, floor);
  take_up_rate(thread, floor);
  // A point that falls into the recorder's own is passed over: gaps have no memory.
  const bool is_hosts = !internal::t_is_own_work;
  return is_sample && is_hosts && internal::recording_epoch() != 0 ? rate : 0;
}

void record_alloc(const void* pointer, std::size_t size, std::uint64_t rate_bytes,
                  const void* caller) noexcept {
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
  head.extra = rate_bytes;
  head.tid = internal::this_tid();
  record_with_stack(head, caller);
  const std::uint64_t cost_ns = internal::sample_cost_ns(head.at_ns, internal::now_ns());
  __atomic_fetch_add(&g_memory.cost_ns, cost_ns, __ATOMIC_RELAXED);
  spend(cost_ns);
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
