// Spans' identity and accounting: which span is open in which task, and when it runs.
// Strongest property: no lock and no shared line but the task's own slot, which only the thread
// that runs the task writes. Spec: docs/spec/recorder.md, "Spans".
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/span_core.h"

#include <cstdint>
#include <exception>

#include "dial9/runtime.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kIdBlock = 256;
constexpr std::uint64_t kUnknownWorkerId = ~std::uint64_t{0};
constexpr std::size_t kSlots = 3;
constexpr std::size_t kBuckets = 16384;  // 1 MiB of untouched memory until spans are used

// Tasks with open spans: task id -> innermost span. A task lies in its bucket, or, where that was
// full, in its second one; `overflows` counts those. A slot is claimed by a compare-and-swap on its
// task and from then on touched by the thread that runs the task; who runs it next is told by the
// runtime.
struct alignas(64) Bucket {
  std::uint64_t tasks[kSlots];
  SpanCore* innermost[kSlots];
  std::uint64_t overflows;
};
static_assert(sizeof(Bucket) == 64);

constinit Bucket g_buckets[kBuckets] = {};
constinit bool g_has_task_spans = false;  // ever: poll hooks of programs without spans stop here
constinit std::uint64_t g_next_id_block = 0;

// Spans outside tasks, by id only: one that ends on a foreign thread leaves no pointer behind.
constexpr std::uint32_t kThreadDepth = 16;
struct ThreadSpans {
  std::uint64_t next_id;
  std::uint64_t end_id;
  std::uint32_t depth;
  std::uint64_t ids[kThreadDepth];  // the innermost last; deeper ones have the 16th as their parent

  std::uint64_t innermost() const { return depth == 0 ? 0 : ids[depth - 1]; }
  void push(std::uint64_t id) {
    if (depth < kThreadDepth) ids[depth++] = id;
  }
  void remove(std::uint64_t id) {
    std::uint32_t at = depth;
    while (at > 0 && ids[at - 1] != id) --at;
    if (at == 0) return;
    for (--depth; at <= depth; ++at) ids[at - 1] = ids[at];
  }
};
__thread ThreadSpans t_spans __attribute__((tls_model("initial-exec"))) = {};

std::uint64_t mix(std::uint64_t task) {
  task *= 0x9E37'79B9'7F4A'7C15;
  return task ^ task >> 32;
}
Bucket& first_bucket(std::uint64_t task) { return g_buckets[mix(task) % kBuckets]; }
Bucket& second_bucket(std::uint64_t task) { return g_buckets[(mix(task) >> 16) % kBuckets]; }

SpanCore** find_in(Bucket& bucket, std::uint64_t task) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (__atomic_load_n(&bucket.tasks[i], __ATOMIC_RELAXED) == task) return &bucket.innermost[i];
  }
  return nullptr;
}

// The task's slot; null if it has no open span.
SpanCore** find_slot(std::uint64_t task) {
  Bucket& first = first_bucket(task);
  SpanCore** slot = find_in(first, task);
  if (slot == nullptr && __atomic_load_n(&first.overflows, __ATOMIC_RELAXED) != 0) {
    slot = find_in(second_bucket(task), task);
  }
  return slot;
}

SpanCore** claim_in(Bucket& bucket, std::uint64_t task) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    std::uint64_t none = 0;
    // Acquire: what the slot's last user wrote is over (pairs with the release in free_slot).
    if (__atomic_compare_exchange_n(&bucket.tasks[i], &none, task, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return &bucket.innermost[i];
    }
  }
  return nullptr;
}

SpanCore** claim_slot(std::uint64_t task) {
  __atomic_store_n(&g_has_task_spans, true, __ATOMIC_RELAXED);
  Bucket& first = first_bucket(task);
  if (SpanCore** slot = claim_in(first, task)) return slot;
  SpanCore** slot = claim_in(second_bucket(task), task);
  if (slot != nullptr) __atomic_fetch_add(&first.overflows, 1, __ATOMIC_RELAXED);
  return slot;
}

void free_slot(std::uint64_t task) {
  Bucket& first = first_bucket(task);
  Bucket* buckets[] = {&first, &second_bucket(task)};
  for (Bucket* bucket : buckets) {
    SpanCore** slot = find_in(*bucket, task);
    if (slot == nullptr) continue;
    if (bucket != &first) __atomic_fetch_sub(&first.overflows, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&bucket->tasks[slot - bucket->innermost], 0, __ATOMIC_RELEASE);
    return;
  }
}

std::uint64_t new_span_id() {
  ThreadSpans& t = t_spans;
  if (t.next_id == t.end_id) {
    t.next_id = __atomic_fetch_add(&g_next_id_block, kIdBlock, __ATOMIC_RELAXED) + 1;
    t.end_id = t.next_id + kIdBlock;
  }
  return kTopBit | t.next_id++;
}

// Unlinks from a chain whose head is `innermost`; usually the span is the head.
void unlink(SpanCore** innermost, const SpanCore& span) {
  for (SpanCore** at = innermost; *at != nullptr; at = &(*at)->outer) {
    if (*at == &span) {
      *at = span.outer;
      return;
    }
  }
}

}  // namespace

bool span_link(SpanCore& span, std::uint64_t parent_id) noexcept {
  span.task = runtime::polled_task();
  std::uint64_t around = 0;
  if (span.task == 0) {
    around = t_spans.innermost();
  } else {
    SpanCore** slot = find_slot(span.task);
    if (slot == nullptr) slot = claim_slot(span.task);
    if (slot == nullptr) {
      count_loss(LossCause::kSpanTable);
      return false;
    }
    span.outer = *slot;
    *slot = &span;
    if (span.outer != nullptr) around = span.outer->id;
  }
  span.id = new_span_id();
  if (span.task == 0) t_spans.push(span.id);
  span.parent_id = parent_id != 0 ? parent_id : around;
  span.exceptions = std::uncaught_exceptions();
  return true;
}

void span_entered(SpanCore& span, std::uint64_t now_ns) noexcept {
  span.entered_ns = now_ns;
  span.running_since_ns = now_ns;
  span.polls = 1;
}

bool span_unlink(SpanCore& span) noexcept {
  if (span.task == 0) {
    t_spans.remove(span.id);
  } else if (SpanCore** slot = find_slot(span.task)) {
    unlink(slot, span);
    if (*slot == nullptr) free_slot(span.task);
  }
  const bool is_running = span.running_since_ns != 0;
  return is_running && std::uncaught_exceptions() <= span.exceptions;
}

SpanTimes span_times(const SpanCore& span, std::uint64_t now_ns, bool completed) noexcept {
  std::uint64_t active = span.active_ns;
  if (span.running_since_ns != 0 && now_ns > span.running_since_ns) {
    active += now_ns - span.running_since_ns;
  }
  const std::uint64_t elapsed = now_ns > span.entered_ns ? now_ns - span.entered_ns : 0;
  if (active > elapsed) active = elapsed;  // stamps of two threads' clock lines differ by a few ns
  return {active, elapsed - active, span.polls, completed};
}

SpanHead span_head(const SpanCore& span) noexcept {
  const runtime::WorkerId worker = runtime::current_worker();
  SpanHead head{worker == runtime::kUnknownWorker ? kUnknownWorkerId : worker, span.id, {}};
  if (span.parent_id != 0) head.parent_span_id = span.parent_id;
  return head;
}

std::uint64_t span_current() noexcept {
  const std::uint64_t task = runtime::polled_task();
  if (task == 0) return t_spans.innermost();
  SpanCore* const* slot = find_slot(task);
  return slot == nullptr || *slot == nullptr ? 0 : (*slot)->id;
}

void span_poll_start(std::uint64_t task, std::uint64_t stamp_ns) noexcept {
  if (task == 0 || !__atomic_load_n(&g_has_task_spans, __ATOMIC_RELAXED)) return;
  SpanCore* const* slot = find_slot(task);
  if (slot == nullptr) return;
  const std::uint64_t at = stamp_ns != 0 ? stamp_ns : now_ns();
  for (SpanCore* span = *slot; span != nullptr; span = span->outer) {
    span->running_since_ns = at;
    ++span->polls;
  }
}

void span_poll_end(std::uint64_t task, std::uint64_t stamp_ns) noexcept {
  if (task == 0 || !__atomic_load_n(&g_has_task_spans, __ATOMIC_RELAXED)) return;
  SpanCore* const* slot = find_slot(task);
  if (slot == nullptr) return;
  const std::uint64_t at = stamp_ns != 0 ? stamp_ns : now_ns();
  for (SpanCore* span = *slot; span != nullptr; span = span->outer) {
    if (span->running_since_ns == 0) continue;
    if (at > span->running_since_ns) span->active_ns += at - span->running_since_ns;
    span->running_since_ns = 0;
  }
}

}  // namespace dial9::internal
