// Spans' identity and accounting: which spans are open in which task, and when it runs.
// Strongest property: what the runtime does at a poll touches this file's own table and never a
// span, which lies in the host's memory: a task of Asio may be polled by two threads at a time, and
// its spans may go meanwhile. No lock anywhere. Spec: docs/spec/recorder.md, "Spans".
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/span_core.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <pthread.h>

#include <cstdint>

#include "dial9/runtime.h"
#include "recorder/recording_state.h"
#include "recorder/runtime_inline.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kIdBlock = 128;  // of one block, ids differ in their first byte only
constexpr std::uint64_t kUnknownWorkerId = ~std::uint64_t{0};
constexpr std::size_t kSlots = 3;
constexpr std::size_t kBuckets = 16384;  // 4 MiB of untouched memory until spans are used
constexpr std::size_t kTaskDepth = 4;
constexpr std::uint64_t kClaimed = ~std::uint64_t{0};  // no task: its slot is being filled

// A task with open spans. Claimed by a compare-and-swap on `task`, filled with its first span, and
// given back as `open` falls to 0.
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
constinit std::uint64_t g_next_id_block = kTopBit | kIdBlock;

// Spans outside tasks that ended on another thread than they began on: each thread takes them off
// its list before it opens another (take_off_strays).
constexpr std::uint32_t kStrays = 64;
constinit std::uint64_t g_strays[kStrays] = {};
constinit std::uint32_t g_next_stray = 0;

// Recordings << 32 | strays that lie in g_strays, or did: a change of either is looked at before
// the next span begins or ends.
constexpr std::uint64_t kRecording = std::uint64_t{1} << 32;
constinit std::uint64_t g_generation = kRecording;
constexpr std::uint64_t kLinking = ~std::uint64_t{0};
std::uint64_t generation() { return __atomic_load_n(&g_generation, __ATOMIC_RELAXED); }

// A cancelled thread, and one that calls pthread_exit(), is unwound with no exception in flight.
// The GNU C library marks it before; it says where by a variable that it has for debuggers. Other
// libraries don't unwind: there such a thread's spans never end.
constexpr std::uint32_t kLeavingBit = 1U << 4;  // EXITING_BITMASK of nptl/descr.h
constinit std::size_t g_leaving_offset = 0;     // of the word, from pthread_self(); 0: not known
constinit const std::uint32_t g_never_leaving = 0;

const std::uint32_t* leaving_word() {
  const std::size_t offset = __atomic_load_n(&g_leaving_offset, __ATOMIC_RELAXED);
  if (offset == 0) return &g_never_leaving;
  return reinterpret_cast<const std::uint32_t*>(::pthread_self() + offset);
}

// A plain load: the bit is set by the thread itself alone.
bool is_leaving(const ThreadSpans& t) { return (*t.leaving & kLeavingBit) != 0; }

// Under the recorder's start lock.
void find_leaving_word() {
  // Bits, how many, and where: a descriptor of libthread_db's.
  const auto* field =
      static_cast<const std::uint32_t*>(::dlsym(RTLD_DEFAULT, "_thread_db_pthread_cancelhandling"));
  constexpr std::uint32_t kMostOffset = 4096;
  if (field == nullptr || field[0] != 32 || field[1] != 1) return;
  if (field[2] == 0 || field[2] >= kMostOffset || field[2] % sizeof(std::uint32_t) != 0) return;
  __atomic_store_n(&g_leaving_offset, field[2], __ATOMIC_RELAXED);
}

// What the C++ ABI says that a thread's exception globals begin with.
struct ExceptionGlobals {
  void* caught;
  std::uint32_t uncaught;
};

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

// Above the highest id that is listed.
std::size_t top_of(const Slot& slot) {
  std::size_t top = kTaskDepth;
  while (top > 0 && load(slot.ids[top - 1]) == 0) --top;
  return top;
}

void list(Slot& slot, std::size_t at, std::uint64_t id) {
  for (; at < kTaskDepth; ++at) {
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

// For the task's first span. The poll, if any, is counted already: its time runs once that is
// entered.
Slot* claim_in(Bucket& bucket, std::uint64_t task, std::uint64_t id, runtime::Poll* poll) {
  for (Slot& slot : bucket.slots) {
    if (load(slot.task) != 0) continue;
    std::uint64_t none = 0;
    // Acquire: what the slot's last tenant wrote is over (pairs with the release in leave_slot).
    if (!__atomic_compare_exchange_n(&slot.task, &none, kClaimed, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    __atomic_store_n(&slot.open, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.ids[0], id, __ATOMIC_RELAXED);
    if (poll != nullptr) {
      poll->spans = &slot;
      poll->spans_since_ns = 0;
      __atomic_fetch_add(&slot.polls, 1, __ATOMIC_RELAXED);
    }
    // Release: who finds the task finds it filled.
    __atomic_store_n(&slot.task, task, __ATOMIC_RELEASE);
    return &slot;
  }
  return nullptr;
}

[[gnu::noinline]] Slot* claim(std::uint64_t task, std::uint64_t id, runtime::Poll* poll) {
  __atomic_store_n(&g_has_task_spans, true, __ATOMIC_RELAXED);
  Bucket& first = first_bucket(task);
  if (Slot* slot = claim_in(first, task, id, poll)) return slot;
  Slot* slot = claim_in(second_bucket(task), task, id, poll);
  if (slot != nullptr) __atomic_fetch_add(&first.overflows, 1, __ATOMIC_RELAXED);
  return slot;
}

// False: nobody's any more.
bool leave_slot(Slot& slot) {
  if (__atomic_fetch_sub(&slot.open, 1, __ATOMIC_RELAXED) != 1) return true;
  Bucket& first = first_bucket(load(slot.task));
  const bool is_first = &slot >= first.slots && &slot < first.slots + kSlots;
  if (!is_first) __atomic_fetch_sub(&first.overflows, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.task, 0, __ATOMIC_RELEASE);
  return false;
}

// One more open span in a slot that was the task's just now. False: it isn't any more.
bool join_slot(Slot& slot, std::uint64_t task) {
  std::uint64_t open = load(slot.open);
  do {
    if (open == 0) return false;
  } while (!__atomic_compare_exchange_n(&slot.open, &open, open + 1, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED));
  // From here on nobody gives it away; it may have changed hands before.
  if (load(slot.task) == task) return true;
  leave_slot(slot);
  return false;
}

// Opens the span in the task's slot; `around` is the innermost one there. Two threads that open the
// first two of a task at once may take a slot each: then each accounts for its own.
Slot* enter_slot(std::uint64_t task, std::uint64_t id, runtime::Poll* poll, std::uint64_t* around) {
  Slot* slot = poll == nullptr ? nullptr : static_cast<Slot*>(poll->spans);
  if (slot == nullptr || load(slot->task) != task) slot = find_slot(task);
  if (slot != nullptr && join_slot(*slot, task)) {
    const std::size_t top = top_of(*slot);
    *around = top == 0 ? 0 : load(slot->ids[top - 1]);
    list(*slot, top, id);
    return slot;
  }
  *around = 0;
  if (poll != nullptr && poll->spans != nullptr) poll = nullptr;  // counts elsewhere: entered later
  return claim(task, id, poll);
}

Slot* slot_of(const SpanCore& span) { return static_cast<Slot*>(span.slot); }

[[gnu::noinline]] runtime::Poll* find_poll_of(std::uint64_t task) {
  using State = runtime::Poll::State;
  runtime::Poll* poll = t_state.poll;
  if (poll == nullptr) return nullptr;
  // A span is opened in it: it is a handler.
  if (poll->state == State::kDeferred) runtime::poll_confirm(*poll);
  // One that began while recording was off runs all the same.
  while (poll != nullptr && poll->state != State::kOpen && poll->state != State::kOff) {
    poll = poll->outer;
  }
  return poll != nullptr && poll->task.id == task ? poll : nullptr;
}

// This thread's poll of the task, if it is in one.
runtime::Poll* poll_of(std::uint64_t task) {
  runtime::Poll* poll = t_state.poll;
  return __builtin_expect(is_own_poll(poll, task), 1) ? poll : find_poll_of(task);
}

void begin_counting(runtime::Poll& poll, Slot& slot, std::uint64_t now) {
  poll.spans = &slot;
  poll.spans_since_ns = now;
  __atomic_fetch_add(&slot.polls, 1, __ATOMIC_RELAXED);
}

std::uint64_t since(std::uint64_t start_ns, std::uint64_t now) {
  return now > start_ns ? now - start_ns : 0;
}

EncodedVarint encode(std::uint64_t value) {
  std::uint8_t bytes[16] = {};
  EncodedVarint encoded{};
  encoded.size = static_cast<std::size_t>(put_varint(bytes, value) - bytes);
  __builtin_memcpy(&encoded.low, bytes, sizeof encoded.low);
  __builtin_memcpy(&encoded.high, bytes + sizeof encoded.low, sizeof encoded.high);
  return encoded;
}

[[gnu::cold, gnu::noinline]] void refill(ThreadSpans& t) {
  t.next_id = __atomic_fetch_add(&g_next_id_block, kIdBlock, __ATOMIC_RELAXED);
  t.end_id = t.next_id + kIdBlock;
  const EncodedVarint first = encode(t.next_id);
  t.wire_id_low = first.low;
  t.wire_id_high = static_cast<std::uint16_t>(first.high);
}

void find_worker(ThreadSpans& t) {
  const Binding* binding = t_state.binding;
  const std::uint32_t worker =
      binding == nullptr ? runtime::kUnknownWorker : event_worker(binding->worker);
  t.worker = encode(worker == runtime::kUnknownWorker ? kUnknownWorkerId : worker);
}

}  // namespace

constinit bool g_has_task_spans = false;
__thread ThreadSpans t_spans __attribute__((tls_model("initial-exec"))) = {};

// The last step of a span's begin: what an exit needs of it, and the enter event.
[[gnu::always_inline]] static inline void finish_begin(SpanCore& span, ThreadSpans& t,
                                                       const void* fields, WriteEnter write,
                                                       std::uint64_t generation) noexcept {
  span.generation = generation;
  span.exceptions = *t.exceptions;
  if (__builtin_expect(is_leaving(t), 0)) {
    signal_fence();  // a branch, not a conditional move for all
    span.wire_id_high |= kBegunLeaving;
  }
  signal_fence();
  t.generation = generation;
  write(span, fields);
}

// Below a span of another block of ids.
[[gnu::noinline]] static void finish_below(SpanCore& span, std::uint64_t parent_id,
                                           const void* fields, WriteEnter write,
                                           std::uint64_t generation) noexcept {
  const EncodedVarint parent = encode(parent_id);
  span.wire_parent_low = parent.low;
  span.wire_parent_high = static_cast<std::uint16_t>(parent.high);
  span.wire_parent_size = static_cast<std::uint32_t>(parent.size);
  finish_begin(span, t_spans, fields, write, generation);
}

// Gives the span the id, which is the thread's next one, and its parent (0: none).
[[gnu::always_inline]] static inline void begin_as(SpanCore& span, ThreadSpans& t, std::uint64_t id,
                                                   std::uint64_t parent_id, const void* fields,
                                                   WriteEnter write,
                                                   std::uint64_t generation) noexcept {
  span.id = id;
  span.wire_id_low = t.wire_id_low | (id & 0x7F);
  span.wire_id_high = t.wire_id_high;
  t.next_id = id + 1;
  span.wire_parent_size = 0;
  if (parent_id != 0) {
    if ((parent_id ^ id) >= kIdBlock) {
      return finish_below(span, parent_id, fields, write, generation);
    }
    span.wire_parent_low = t.wire_id_low | (parent_id & 0x7F);
    span.wire_parent_high = t.wire_id_high;
    span.wire_parent_size = kSpanIdBytes;
  }
  finish_begin(span, t, fields, write, generation);
}

[[gnu::noinline]] static void begin_in_task(SpanCore& span, std::uint64_t parent_id,
                                            const void* fields, WriteEnter write,
                                            std::uint64_t generation) noexcept {
  ThreadSpans& t = t_spans;
  const std::uint64_t id = t.next_id;
  std::uint64_t around = 0;
  span.slot = enter_slot(span.task, id, poll_of(span.task), &around);
  if (span.slot == nullptr) {
    t.generation = generation;
    return count_loss(LossCause::kSpanTable, 2);  // its enter and its exit
  }
  begin_as(span, t, id, parent_id != 0 ? parent_id : around, fields, write, generation);
}

// A span that another thread ended is no parent of what comes. Where they were too many to know
// which, none of the open ones is.
static void take_off_strays(ThreadSpans& t, std::uint64_t generation) noexcept {
  const std::uint32_t next = __atomic_load_n(&g_next_stray, __ATOMIC_RELAXED);
  if (next - t.strays_seen > kStrays) t.depth = 0;
  for (const std::uint64_t& stray : g_strays) t.remove(load(stray));
  t.strays_seen = static_cast<std::uint32_t>(generation);
}
static void leave_stray(std::uint64_t id) noexcept {
  const std::uint32_t at = __atomic_fetch_add(&g_next_stray, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&g_strays[at % kStrays], id, __ATOMIC_RELAXED);
  // Release: whoever sees it counted finds it there.
  __atomic_fetch_add(&g_generation, 1, __ATOMIC_RELEASE);
}

void span_recording_begins() noexcept {
  find_leaving_word();
  // Release: who sees it knows where the word is.
  __atomic_fetch_add(&g_generation, kRecording, __ATOMIC_RELEASE);
}

// Brings the thread up to date. False: this is a signal handler, in the middle of a span's begin.
static bool refresh(ThreadSpans& t) noexcept {
  if (t.generation == kLinking) return false;
  // Acquire pairs with the release in span_recording_begins(), and in leave_stray().
  const std::uint64_t generation = __atomic_load_n(&g_generation, __ATOMIC_ACQUIRE);
  // Before the mark: a signal's handler that finds that one may end a span.
  t.exceptions = &reinterpret_cast<const ExceptionGlobals*>(abi::__cxa_get_globals())->uncaught;
  t.leaving = leaving_word();
  signal_fence();
  t.generation = kLinking;
  signal_fence();
  take_off_strays(t, generation);
  find_worker(t);
  signal_fence();
  t.generation = generation;
  return true;
}

[[gnu::cold, gnu::noinline]] static void prepare_begin(SpanCore& span, std::uint64_t parent_id,
                                                       const void* fields,
                                                       WriteEnter write) noexcept {
  if (!refresh(t_spans)) return count_loss(LossCause::kNested, 2);  // its enter and its exit
  span_begin(span, parent_id, fields, write);
}

// While t.generation is kLinking.
[[gnu::always_inline]] static inline void begin(SpanCore& span, ThreadSpans& t,
                                                std::uint64_t parent_id, const void* fields,
                                                WriteEnter write,
                                                std::uint64_t generation) noexcept {
  span.task = polled_task();
  if (span.task != 0) return begin_in_task(span, parent_id, fields, write, generation);
  const std::uint64_t id = t.next_id;
  const std::uint64_t around = t.innermost();
  t.push(id);
  begin_as(span, t, id, parent_id != 0 ? parent_id : around, fields, write, generation);
}

[[gnu::cold, gnu::noinline]] static void refill_and_begin(SpanCore& span, std::uint64_t parent_id,
                                                          const void* fields, WriteEnter write,
                                                          std::uint64_t generation) noexcept {
  refill(t_spans);
  begin(span, t_spans, parent_id, fields, write, generation);
}

void span_begin(SpanCore& span, std::uint64_t parent_id, const void* fields,
                WriteEnter write) noexcept {
  ThreadSpans& t = t_spans;
  const std::uint64_t now = generation();
  if (__builtin_expect(t.generation != now, 0)) {
    return prepare_begin(span, parent_id, fields, write);
  }
  t.generation = kLinking;  // what a signal handler opens meanwhile is lost, as nested
  signal_fence();
  if (__builtin_expect(t.next_id == t.end_id, 0)) {
    return refill_and_begin(span, parent_id, fields, write, now);
  }
  begin(span, t, parent_id, fields, write, now);
}

void span_entered_in_task(SpanCore& span, std::uint64_t now) noexcept {
  Slot* slot = slot_of(span);
  runtime::Poll* poll = poll_of(span.task);
  if (poll != nullptr && poll->spans != slot) {
    span_poll_end(*poll, now);
    begin_counting(*poll, *slot, now);
  }
  span.active_before_ns = load(slot->active_ns);
  span.polls_before = load(slot->polls);
  if (poll == nullptr) return;
  // The poll will add its whole time; what lay before now isn't the span's.
  if (poll->spans_since_ns == 0) poll->spans_since_ns = now;
  span.active_before_ns += since(poll->spans_since_ns, now);
  --span.polls_before;
}

[[gnu::noinline]] static void end_in_task(SpanCore& span, const void* late, WriteExit write,
                                          bool is_unwinding) noexcept {
  Slot& slot = *slot_of(span);
  runtime::Poll* poll = poll_of(span.task);
  if (poll != nullptr && poll->spans != &slot) poll = nullptr;
  span.running_since_ns = poll != nullptr ? poll->spans_since_ns : 0;
  span.active_ns = static_cast<std::int64_t>(load(slot.active_ns) - span.active_before_ns);
  span.polls = load(slot.polls) - span.polls_before;
  unlist(slot, span.id);
  // Where it was the last one, the poll counts for nobody any more.
  if (!leave_slot(slot) && poll != nullptr) poll->spans = nullptr;
  span.slot = nullptr;
  write(span, late, polled_task() == span.task && !is_unwinding);
}

// Not the innermost one of this thread: closed out of order, deeper than the list, or begun
// elsewhere.
[[gnu::noinline]] static void unlink_inner(ThreadSpans& t, std::uint64_t id) noexcept {
  const std::uint64_t generation = t.generation;
  t.generation = kLinking;
  signal_fence();
  t.remove(id);
  signal_fence();
  t.generation = generation;
  if (id >= t.end_id || id + kIdBlock < t.end_id) leave_stray(id);
}
[[gnu::cold, gnu::noinline]] static void end_inner(SpanCore& span, const void* late,
                                                   WriteExit write, bool is_unwinding) noexcept {
  unlink_inner(t_spans, span.id);
  write(span, late, !is_unwinding);
}

[[gnu::always_inline]] static inline void take_out(ThreadSpans& t, SpanCore& span, const void* late,
                                                   WriteExit write, bool is_unwinding) noexcept {
  if (span.task != 0) return end_in_task(span, late, write, is_unwinding);
  if (__builtin_expect(t.innermost() != span.id, 0)) {
    return end_inner(span, late, write, is_unwinding);
  }
  --t.depth;
  write(span, late, !is_unwinding);
}

// Of a thread that is being unwound to its end; a destructor's own spans may have begun since then.
[[gnu::cold, gnu::noinline]] static void end_leaving(SpanCore& span, const void* late,
                                                     WriteExit write) noexcept {
  ThreadSpans& t = t_spans;
  const bool is_of_before = (span.wire_id_high & kBegunLeaving) == 0;
  take_out(t, span, late, write, is_of_before || *t.exceptions > span.exceptions);
}

static void end(SpanCore& span, const void* late, WriteExit write) noexcept {
  ThreadSpans& t = t_spans;
  if (__builtin_expect(is_leaving(t), 0)) return end_leaving(span, late, write);
  take_out(t, span, late, write, *t.exceptions > span.exceptions);
}

// Of a span without an exit: begun in a recording that is over, or never entered.
static void write_no_exit(const SpanCore&, const void*, bool) noexcept {}

[[gnu::cold, gnu::noinline]] static void prepare_end(SpanCore& span, const void* late,
                                                     WriteExit write) noexcept {
  const bool is_late = (span.generation ^ generation()) >= kRecording;
  refresh(t_spans);
  end(span, late, is_late ? write_no_exit : write);
}

void span_end(SpanCore& span, const void* late, WriteExit write) noexcept {
  const std::uint64_t now = generation();
  const bool is_plain = t_spans.generation == now && span.generation == now;
  if (__builtin_expect(!is_plain, 0)) return prepare_end(span, late, write);
  end(span, late, write);
}

void span_not_entered(SpanCore& span, bool was_recording) noexcept {
  runtime::Poll* poll = span.task == 0 ? nullptr : poll_of(span.task);
  span_end(span, nullptr, write_no_exit);
  if (poll != nullptr && poll->spans_since_ns == 0) poll->spans_since_ns = now_ns();
  span.id = 0;
  const LossCause cause = t_buffer.last_loss;
  if (was_recording && cause != LossCause::kCount) count_loss(cause);  // else it was shed
}

std::uint64_t span_current() noexcept {
  const std::uint64_t task = polled_task();
  if (task == 0) return t_spans.innermost();
  const Slot* slot = find_slot(task);
  if (slot == nullptr) return 0;
  const std::size_t top = top_of(*slot);
  return top == 0 ? 0 : load(slot->ids[top - 1]);
}

std::uint64_t span_sampled(std::uint64_t task) noexcept {
  if (task == 0) return t_spans.innermost();
  const Slot* slot = find_slot(task);
  if (slot == nullptr) return 0;
  const std::size_t top = top_of(*slot);
  const std::uint64_t id = top == 0 ? 0 : load(slot->ids[top - 1]);
  // Another thread may have ended the task's last span, and another task have taken the slot.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return load(slot->task) == task ? id : 0;
}

void span_poll_start(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept {
  if (poll.task.id == 0 || !__atomic_load_n(&g_has_task_spans, __ATOMIC_RELAXED)) return;
  if (Slot* slot = find_slot(poll.task.id)) {
    begin_counting(poll, *slot, stamp_ns != 0 ? stamp_ns : now_ns());
  }
}

void span_poll_end(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept {
  if (poll.spans == nullptr) return;
  auto& slot = *static_cast<Slot*>(poll.spans);
  poll.spans = nullptr;
  // The task's spans may all have ended on another thread, and the slot be another task's.
  if (load(slot.task) != poll.task.id || poll.spans_since_ns == 0) return;
  const std::uint64_t now = stamp_ns != 0 ? stamp_ns : now_ns();
  __atomic_fetch_add(&slot.active_ns, since(poll.spans_since_ns, now), __ATOMIC_RELAXED);
}

}  // namespace dial9::internal
