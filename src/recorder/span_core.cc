// Spans' identity and accounting: which spans are open in which task, and when it runs.
// Strongest property: what the runtime does at a poll touches this file's own table and never a
// span, which lies in the host's memory: a task of Asio may be polled by two threads at a time, and
// its spans may go meanwhile. No lock anywhere. Spec: docs/spec/recorder.md, "Spans".
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/span_core.h"

#include <cstdint>
#include <exception>

#include "dial9/runtime.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kIdBlock = 256;
constexpr std::uint64_t kUnknownWorkerId = ~std::uint64_t{0};
constexpr std::size_t kSlots = 3;
constexpr std::size_t kBuckets = 16384;  // 4 MiB of untouched memory until spans are used
constexpr std::size_t kTaskDepth = 4;

// A task with open spans. Claimed by a compare-and-swap on `task`, given back as `open` falls to 0.
// The two sums only rise, over all tenants: who measures takes a difference.
struct alignas(64) Slot {
  std::uint64_t task;
  std::uint64_t active_ns;        // of polls that have ended
  std::uint64_t polls;            // that have begun
  std::uint64_t open;             // spans
  std::uint64_t ids[kTaskDepth];  // of spans, the innermost last; 0: gone. Deeper ones aren't
                                  // listed: what opens in them has the last as its parent
};
static_assert(sizeof(Slot) == 64);

// A task lies in its bucket, or, where that was full, in its second one; `overflows` counts those.
struct Bucket {
  Slot slots[kSlots];
  alignas(64) std::uint64_t overflows;
};

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

std::uint64_t load(const std::uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

Slot* find_in(Bucket& bucket, std::uint64_t task) {
  for (Slot& slot : bucket.slots) {
    if (load(slot.task) == task) return &slot;
  }
  return nullptr;
}

// The task's slot; null if it has no open span.
Slot* find_slot(std::uint64_t task) {
  Bucket& first = first_bucket(task);
  Slot* slot = find_in(first, task);
  if (slot == nullptr && load(first.overflows) != 0) slot = find_in(second_bucket(task), task);
  return slot;
}

Slot* claim_in(Bucket& bucket, std::uint64_t task) {
  for (Slot& slot : bucket.slots) {
    std::uint64_t none = 0;
    // Acquire: what the slot's last tenant wrote is over (pairs with the release in leave_slot).
    if (__atomic_compare_exchange_n(&slot.task, &none, task, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      __atomic_store_n(&slot.open, 1, __ATOMIC_RELAXED);
      return &slot;
    }
  }
  return nullptr;
}

// One more open span of the task. Two threads that open the first two of a task at once may take a
// slot each: then each accounts for its own.
Slot* enter_slot(std::uint64_t task) {
  if (Slot* slot = find_slot(task)) {
    std::uint64_t open = load(slot->open);
    while (open != 0) {
      if (__atomic_compare_exchange_n(&slot->open, &open, open + 1, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        return slot;
      }
    }
  }
  __atomic_store_n(&g_has_task_spans, true, __ATOMIC_RELAXED);
  Bucket& first = first_bucket(task);
  if (Slot* slot = claim_in(first, task)) return slot;
  Slot* slot = claim_in(second_bucket(task), task);
  if (slot != nullptr) __atomic_fetch_add(&first.overflows, 1, __ATOMIC_RELAXED);
  return slot;
}

void leave_slot(Slot& slot) {
  const std::uint64_t task = load(slot.task);
  if (__atomic_fetch_sub(&slot.open, 1, __ATOMIC_RELAXED) != 1) return;
  Bucket& first = first_bucket(task);
  const bool is_first = &slot >= first.slots && &slot < first.slots + kSlots;
  if (!is_first) __atomic_fetch_sub(&first.overflows, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.task, 0, __ATOMIC_RELEASE);
}

// Above the highest id that is listed.
std::size_t top_of(const Slot& slot) {
  std::size_t top = kTaskDepth;
  while (top > 0 && load(slot.ids[top - 1]) == 0) --top;
  return top;
}

std::uint64_t innermost(const Slot& slot) {
  const std::size_t top = top_of(slot);
  return top == 0 ? 0 : load(slot.ids[top - 1]);
}

void list(Slot& slot, std::uint64_t id) {
  for (std::size_t at = top_of(slot); at < kTaskDepth; ++at) {
    std::uint64_t none = 0;
    if (__atomic_compare_exchange_n(&slot.ids[at], &none, id, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return;
    }
  }
}

void unlist(Slot& slot, std::uint64_t id) {
  for (std::uint64_t& listed : slot.ids) {
    if (load(listed) == id) __atomic_store_n(&listed, 0, __ATOMIC_RELAXED);
  }
}

Slot* slot_of(const SpanCore& span) { return static_cast<Slot*>(span.slot); }

// This thread's recorded poll of the task, if it is in one.
runtime::Poll* poll_of(std::uint64_t task) {
  runtime::Poll* poll = t_state.poll;
  if (poll != nullptr) runtime::poll_confirm(*poll);  // a span is opened in it: it is a handler
  while (poll != nullptr && poll->state != runtime::Poll::State::kOpen) poll = poll->outer;
  return poll != nullptr && poll->task.id == task ? poll : nullptr;
}

void begin_counting(runtime::Poll& poll, Slot& slot, std::uint64_t now) {
  poll.spans = &slot;
  poll.spans_since_ns = now;
  __atomic_fetch_add(&slot.polls, 1, __ATOMIC_RELAXED);
}

std::uint64_t since(std::uint64_t start_ns, std::uint64_t now) {
  return now > start_ns ? now - start_ns : 0;
}

std::uint64_t new_span_id() {
  ThreadSpans& t = t_spans;
  if (t.next_id == t.end_id) {
    t.next_id = __atomic_fetch_add(&g_next_id_block, kIdBlock, __ATOMIC_RELAXED) + 1;
    t.end_id = t.next_id + kIdBlock;
  }
  return kTopBit | t.next_id++;
}

}  // namespace

bool span_link(SpanCore& span, std::uint64_t parent_id) noexcept {
  span.task = runtime::polled_task();
  std::uint64_t around = 0;
  span.slot = nullptr;
  if (span.task == 0) {
    around = t_spans.innermost();
  } else {
    Slot* slot = enter_slot(span.task);
    if (slot == nullptr) {
      count_loss(LossCause::kSpanTable);
      return false;
    }
    around = innermost(*slot);
    span.slot = slot;
  }
  span.id = new_span_id();
  if (span.task == 0) {
    t_spans.push(span.id);
  } else {
    list(*slot_of(span), span.id);
  }
  span.parent_id = parent_id != 0 ? parent_id : around;
  span.exceptions = std::uncaught_exceptions();
  return true;
}

void span_entered(SpanCore& span, std::uint64_t now) noexcept {
  span.entered_ns = now;
  Slot* slot = slot_of(span);
  if (slot == nullptr) {
    span.active_ns = 0;
    span.running_since_ns = now;
    span.polls = 1;
    return;
  }
  runtime::Poll* poll = poll_of(span.task);
  if (poll != nullptr && poll->spans != slot) {
    span_poll_end(*poll, now);
    begin_counting(*poll, *slot, now);
  }
  span.active_before_ns = load(slot->active_ns);
  span.polls_before = load(slot->polls);
  if (poll == nullptr) return;
  // The poll will add its whole time; what lay before now isn't the span's.
  span.active_before_ns += since(poll->spans_since_ns, now);
  --span.polls_before;
}

bool span_unlink(SpanCore& span) noexcept {
  bool is_running = true;
  if (span.task == 0) {
    t_spans.remove(span.id);
  } else if (Slot* slot = slot_of(span)) {
    is_running = runtime::polled_task() == span.task;
    const runtime::Poll* poll = poll_of(span.task);
    span.running_since_ns = poll != nullptr && poll->spans == slot ? poll->spans_since_ns : 0;
    span.active_ns = static_cast<std::int64_t>(load(slot->active_ns) - span.active_before_ns);
    span.polls = load(slot->polls) - span.polls_before;
    unlist(*slot, span.id);
    leave_slot(*slot);
    span.slot = nullptr;
  }
  return is_running && std::uncaught_exceptions() <= span.exceptions;
}

SpanTimes span_times(const SpanCore& span, std::uint64_t now, bool completed) noexcept {
  const std::uint64_t elapsed = since(span.entered_ns, now);
  std::int64_t active = span.active_ns;
  if (span.running_since_ns != 0) {
    active += static_cast<std::int64_t>(since(span.running_since_ns, now));
  }
  // Short where another thread hasn't ended its poll of the task yet; long where two polls of the
  // task ran at a time.
  const std::uint64_t kept = active < 0 ? 0 : static_cast<std::uint64_t>(active);
  const std::uint64_t active_ns = kept < elapsed ? kept : elapsed;
  return {active_ns, elapsed - active_ns, span.polls, completed};
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
  const Slot* slot = find_slot(task);
  return slot == nullptr ? 0 : innermost(*slot);
}

void span_poll_start(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept {
  if (poll.task.id == 0 || !__atomic_load_n(&g_has_task_spans, __ATOMIC_RELAXED)) return;
  if (Slot* slot = find_slot(poll.task.id)) {
    begin_counting(poll, *slot, stamp_ns != 0 ? stamp_ns : now_ns());
  }
}

void span_poll_end(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept {
  if (poll.spans == nullptr) return;
  const std::uint64_t now = stamp_ns != 0 ? stamp_ns : now_ns();
  auto& slot = *static_cast<Slot*>(poll.spans);
  poll.spans = nullptr;
  __atomic_fetch_add(&slot.active_ns, since(poll.spans_since_ns, now), __ATOMIC_RELAXED);
}

}  // namespace dial9::internal
