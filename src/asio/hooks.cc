// The out-of-line half of the Asio hooks: turns operations into tasks, wakes and polls of the core
// seam. An operation belongs to the task that started it; one that nobody's task started begins a
// task of its own. Where Asio doesn't say when an operation became ready, no wake is recorded.
// Spec: docs/spec/events_ours.md, "Asio".
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <ctime>

#include "asio/contexts.h"
#include "asio/op_sites.h"
#include "asio/ready_times.h"
#include "dial9/asio_tracking.h"
#include "dial9/event.h"
#include "recorder/runtime_inline.h"

namespace dial9::asio::hooks {

namespace {

using internal::t_state;

// The innermost one on this thread.
__thread Location* t_location __attribute__((tls_model("initial-exec")));

// A strand's own turn, of which a handler has run.
bool is_scheduler(const runtime::Poll* poll) noexcept {
  return poll != nullptr && poll->state == runtime::Poll::State::kScheduler;
}

constexpr std::uint8_t kMayBeStrandTurn = 1;
constexpr std::uint8_t kIsQueued = 2;     // counted as pushed, to be counted as popped
constexpr std::uint8_t kIsRoot = 4;       // began its task
constexpr std::uint8_t kIsAttempted = 8;  // its system call has given a result
// Work that went to a queue, with its wake recorded: what most handlers are. Nothing else is to be
// done for it at its begin and its end than a poll.
constexpr std::uint8_t kIsPlain = 16;

bool is_strand(const TrackedOp& op) noexcept {
  return op.site != nullptr && op.site->kind == OpKind::kStrand;
}
bool is_plain(const TrackedOp& op) noexcept { return (op.flags & kIsPlain) != 0; }

[[gnu::always_inline]] inline internal::ShortId short_id_of(const TrackedOp& op) noexcept {
  return {op.short_id, op.short_id_size};
}
// What is known of plain work from its creation on: its id, and in the place of its op's fd the
// rest, one store with what plain_head() gave for its runtime.
std::uint64_t plain_head(std::uint16_t runtime) noexcept {
  return std::uint64_t{kIsQueued | kIsPlain} << 32 | std::uint64_t{runtime} << 48;
}
[[gnu::always_inline]] inline void note_plain(TrackedOp& op, internal::ShortId id,
                                              std::uint64_t head) noexcept {
  static_assert(offsetof(TrackedOp, flags) == offsetof(TrackedOp, fd) + 4 &&
                offsetof(TrackedOp, short_id_size) == offsetof(TrackedOp, fd) + 5 &&
                offsetof(TrackedOp, runtime) == offsetof(TrackedOp, fd) + 6);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&op);
  internal::put_raw(bytes + offsetof(TrackedOp, fd), head | std::uint64_t{id.size} << 40);
  op.short_id = id.bytes;
}

// A timer whose expiry is further from now than this is on a clock that isn't known.
constexpr std::uint64_t kMaxClockDistanceNs = std::uint64_t{366} * 86'400 * 1'000'000'000;

constinit runtime::Place g_began_earlier{"(began before the recording)"};

// A path in the user's code, not of Asio's own composed operations.
bool is_users(const Location& location) noexcept {
  return location.file != nullptr && *location.file != 0 &&
         std::strstr(location.file, "/asio/") == nullptr;
}

runtime::Place* place_of(const OpSite& site) noexcept {
  const Location* location = t_location;
  if (location == nullptr || !is_users(*location)) return site.place;
  char text[160];
  const std::size_t length = std::strlen(location->file);
  const std::size_t kept = length < 140 ? length : 140;
  std::memcpy(text, location->file + length - kept, kept);
  std::size_t size = kept;
  text[size++] = ':';
  char digits[12];
  int n = 0;
  for (int line = location->line; n == 0 || line > 0; line /= 10) {
    digits[n++] = static_cast<char>('0' + line % 10);
  }
  while (n > 0) text[size++] = digits[--n];
  return runtime::intern_place(text, size);
}

std::uint64_t realtime_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Records a wake for a poll that begins now.
void wake_for_poll(const TrackedOp& op, runtime::TaskId waker, std::uint64_t ready_ns) noexcept {
  runtime::task_ready_at(op.task.id, waker, internal::wake_stamp(op.task.id, ready_ns));
}

bool is_near(std::uint64_t a, std::uint64_t b) noexcept {
  return (a > b ? a - b : b - a) < kMaxClockDistanceNs;
}

// The expiry is the first field of a timer's implementation, in ticks of its clock: nanoseconds of
// the monotonic or of the real-time clock are told apart by their distance from now.
std::uint64_t expiry_ns(const void* timer, std::uint64_t now) noexcept {
  std::uint64_t ticks;
  std::memcpy(&ticks, timer, sizeof ticks);
  if (ticks == 0) return 0;
  const std::uint64_t realtime = realtime_ns();
  if (is_near(ticks, realtime)) return ticks - realtime + now;
  return is_near(ticks, now) ? ticks : 0;
}

// The next such work is plain, while the thread counts for this context.
void note_counting(const TrackedOp& op) noexcept {
  const internal::Binding* counting = t_state.counting;
  if (counting == nullptr || counting->runtime != op.runtime) return;
  t_state.counting_context = op.context;
  t_state.counting_head = plain_head(op.runtime);
  t_state.counting_forgotten = g_forgotten.load(std::memory_order_relaxed);
}

// Known at the creation: work that goes to a queue, and timers.
void note_created(TrackedOp& op, bool is_timer_known) noexcept {
  const bool is_turn =
      op.site->may_be_strand_turn && (t_state.is_after_strand_push || is_scheduler(t_state.poll));
  t_state.is_after_strand_push = op.site->kind == OpKind::kStrand;
  if (t_state.is_after_strand_push) t_state.counting_context = nullptr;  // op_posted() asks no more
  switch (op.site->kind) {
    case OpKind::kPosted:
    case OpKind::kStrand:
      if (is_turn) {
        op.flags = op.flags | kMayBeStrandTurn;
        op.created_ns = runtime::now_ns();
        return;
      }
      op.flags = op.flags | kIsQueued;
      if (op.site->kind == OpKind::kPosted) {
        op.flags = op.flags | kIsPlain;
        if (op.task.id < internal::kShortTasks) {
          const internal::ShortId id = internal::short_id(op.task.id);
          op.short_id = id.bytes;
          op.short_id_size = static_cast<std::uint8_t>(id.size);
        }
        op.ready_ns = runtime::polled_task();  // the waker, for wake_again()
        op.created_ns = runtime::work_queued(op.runtime, op.task.id);
        note_counting(op);
        return;
      }
      op.created_ns = runtime::now_ns();  // a wait for the strand is counted from here
      runtime::queue_pushed(op.runtime);
      op.ready_ns = runtime::polled_task();  // the waker, for note_strand_ready()
      return;
    case OpKind::kTimer:
      op.created_ns = runtime::now_ns();
      if (!is_timer_known) return;
      op.ready_ns = expiry_ns(op.object, op.created_ns);
      if (op.ready_ns != 0 && op.ready_ns < op.created_ns) op.ready_ns = op.created_ns;
      return;
    default:
      op.created_ns = runtime::now_ns();
      return;
  }
}

std::uint64_t descriptor_event_ns(const TrackedOp& op) noexcept {
  switch (op.site->kind) {
    case OpKind::kRead:
      return last_readable_ns(op.fd);
    case OpKind::kWrite:
      return last_writable_ns(op.fd);
    case OpKind::kAnyEvent: {
      const std::uint64_t read = last_readable_ns(op.fd);
      const std::uint64_t write = last_writable_ns(op.fd);
      return read > write ? read : write;
    }
    default:
      return 0;
  }
}

// Records when the operation became ready, if that is known only now.
void note_ready(const TrackedOp& op, bool is_aborted) noexcept {
  if (op.site == nullptr || op.site->kind <= OpKind::kStrand) return;
  if (is_aborted) {
    ObjectNote cancel;
    if (g_cancels.get(op.object, &cancel) && cancel.when_ns >= op.created_ns) {
      wake_for_poll(op, cancel.who, cancel.when_ns);
    }
    return;
  }
  std::uint64_t ready_ns = op.ready_ns;
  if (op.site->kind == OpKind::kTimer && ready_ns > runtime::now_ns()) ready_ns = 0;
  if (ready_ns == 0) {
    const std::uint64_t event_ns = descriptor_event_ns(op);
    if (event_ns > op.created_ns) ready_ns = event_ns;
  }
  if (ready_ns != 0) wake_for_poll(op, 0, ready_ns);
}

void note_strand_ready(const TrackedOp& op) noexcept {
  if (op.created_ns != 0) wake_for_poll(op, op.ready_ns, op.created_ns);
}

void note_strand_wait(const TrackedOp& op) noexcept {
  ObjectNote holder;
  if (op.created_ns == 0 || !g_strands.get(op.object, &holder)) return;
  if (holder.who == op.task.id || holder.when_ns <= op.created_ns) return;
  runtime::lock_wait(runtime::LockKind::kStrand, op.task.id,
                     reinterpret_cast<std::uintptr_t>(op.object), holder.tid, op.created_ns,
                     holder.when_ns - op.created_ns);
}

// Of queued work, whose wake was recorded as it was queued.
void wake_again(const TrackedOp& op) noexcept {
  const runtime::RuntimeId runtime = op.runtime;
  if (op.created_ns == 0 || runtime::is_polled(runtime, op.task.id)) return;
  wake_for_poll(op, op.ready_ns, op.created_ns);
}

// On a descriptor, with a result: all that its begin needs is a wake and a poll.
bool is_done_plainly(const TrackedOp& op, bool is_aborted) noexcept {
  constexpr std::uint8_t kDone = kIsAttempted | kIsQueued;
  return (op.flags & (kDone | kMayBeStrandTurn)) == kDone && op.ready_ns != 0 && !is_aborted;
}

void pop(const TrackedOp& op) noexcept {
  if ((op.flags & kIsQueued) != 0) runtime::queue_popped(op.runtime);
}

}  // namespace

namespace {

// The wake is recorded, by `waker`, and op.created_ns is its stamp.
[[gnu::always_inline]] inline bool note_posted(TrackedOp& op, runtime::TaskId waker,
                                               internal::ShortId id) noexcept {
  op.ready_ns = waker;  // for wake_again()
  note_plain(op, id, t_state.counting_head);
  internal::count_up(t_state.counting->counters.pushed);
  return true;
}

[[gnu::noinline]] bool op_posted_to_another(TrackedOp& op, std::uint32_t epoch) noexcept {
  const runtime::TaskId waker = internal::polled_task();
  const runtime::TaskId task = op.task.id;
  return task != 0 && task < internal::kShortTasks && waker < internal::kShortTasks &&
         !is_scheduler(t_state.poll) &&
         internal::try_queue_work(epoch, waker, task, op.created_ns) &&
         note_posted(op, waker, internal::short_id(task));
}

// In a poll of the task itself.
[[gnu::always_inline]] inline bool op_posted_to_itself(TrackedOp& op, std::uint32_t epoch,
                                                       const runtime::Poll& poll) noexcept {
  return internal::try_queue_own_work(epoch, poll, op.created_ns) &&
         note_posted(op, poll.task.id, internal::short_id_of(poll));
}

// The first time in a poll that began the general way.
[[gnu::noinline]] bool op_posted_first(TrackedOp& op, std::uint32_t epoch) noexcept {
  runtime::Poll& poll = *t_state.poll;
  return internal::make_short_id(poll) && op_posted_to_itself(op, epoch, poll);
}

}  // namespace

bool op_posted(TrackedOp& op, std::uint32_t epoch) noexcept {
  if (__builtin_expect(op.context != t_state.counting_context, 0)) return false;
  const std::uint32_t forgotten = g_forgotten.load(std::memory_order_relaxed);
  if (__builtin_expect(t_state.counting_forgotten != forgotten, 0)) return false;
  const runtime::Poll* const poll = t_state.poll;
  if (__builtin_expect(!internal::is_own_poll(poll, op.task.id), 0)) {
    return op_posted_to_another(op, epoch);
  }
  if (__builtin_expect(poll->short_id_size == 0, 0)) return op_posted_first(op, epoch);
  return op_posted_to_itself(op, epoch, *poll);
}

void op_created(TrackedOp& op, const char* type, void* object, std::uintptr_t native,
                const char* name, bool is_timer_known) noexcept {
  op.object = object;
  op.site = find_op_site(type, name);
  op.runtime = static_cast<std::uint16_t>(runtime_of_context(op.context));
  op.fd = native == 0 || native >= kMaxFd ? kNoFd : static_cast<std::uint32_t>(native);
  if (op.task.id == 0) {
    op.task = runtime::TaskRef{runtime::new_task_id(), place_of(*op.site)};
    op.flags = kIsRoot;
  }
  note_created(op, is_timer_known);
}

// Looked at first: a load and a branch are cheaper than a store, which queues behind all others.
[[gnu::always_inline]] static inline void leave_strand_push() noexcept {
  if (__builtin_expect(t_state.is_after_strand_push, 0)) t_state.is_after_strand_push = false;
}

void op_began(Completion& completion, std::uint32_t epoch, bool is_aborted) noexcept {
  const Completion::Op& op = completion.op_;
  leave_strand_push();
  completion.state_ = Completion::State::kBegunPlain;  // unless it goes on below
  if (op.short_id_size == 0) return op_began_done(completion, epoch, is_aborted);
  const auto poll = [&]() -> runtime::Poll& { return completion.poll(); };
  const auto short_id = [&] { return short_id_of(op); };
  if (__builtin_expect(!internal::is_wake_consumed(op.task.id, op.created_ns) &&
                           internal::start_plain_poll(poll, epoch, op.runtime, op.task, short_id),
                       1)) {
    return;
  }
  op_began_rest(completion, is_aborted);
}

void op_began_done(Completion& completion, std::uint32_t epoch, bool is_aborted) noexcept {
  const Completion::Op& op = completion.op_;
  if (!is_done_plainly(op, is_aborted) || op.task.id >= internal::kShortTasks ||
      !internal::can_start_plain_poll(op.runtime, op.task)) {
    return op_began_rest(completion, is_aborted);
  }
  internal::write_wake(epoch, 0, op.task.id, internal::wake_stamp(op.task.id, op.ready_ns));
  const auto poll = [&]() -> runtime::Poll& { return completion.poll(); };
  const auto short_id = [&] { return internal::short_id(op.task.id); };
  if (internal::start_plain_poll(poll, epoch, op.runtime, op.task, short_id)) return;
  completion.state_ = Completion::State::kBegun;
  pop(op);
  runtime::poll_start(completion.poll(), op.runtime, op.task);
}

void op_began_rest(Completion& completion, bool is_aborted) noexcept {
  Completion::Op& op = completion.op_;
  completion.state_ = Completion::State::kBegun;
  if (is_plain(op) && internal::is_wake_consumed(op.task.id, op.created_ns)) wake_again(op);
  pop(op);
  if (!is_recording()) {
    runtime::poll_start(completion.poll(), 0, op.task);
    return;
  }
  if (op.task.id == 0) op.task = runtime::TaskRef{runtime::new_task_id(), &g_began_earlier};
  const runtime::RuntimeId runtime = op.runtime != 0 ? op.runtime : runtime_of_context(op.context);
  if ((op.flags & kMayBeStrandTurn) != 0) {
    runtime::poll_start_deferred(completion.poll(), runtime, op.task);
    return;
  }
  // A strand that is free runs a handler at once, inside the poll that came to it: no wake then,
  // since no poll would answer it, and the task's next poll would look late by all the time in
  // between.
  if (!runtime::is_polled(runtime, op.task.id)) {
    note_ready(op, is_aborted);
    if (is_strand(op)) note_strand_ready(op);
  }
  if (is_strand(op)) note_strand_wait(op);
  runtime::poll_start(completion.poll(), runtime, op.task);
}

void op_ended(Completion& completion, std::uint32_t epoch) noexcept {
  leave_strand_push();
  if (__builtin_expect(completion.state_ == Completion::State::kBegunPlain &&
                           internal::end_plain_poll(completion.poll(), epoch),
                       1)) {
    return;
  }
  op_ended_rest(completion);
}

void op_ended_rest(Completion& completion) noexcept {
  const Completion::Op& op = completion.op_;
  if (completion.poll().state == runtime::Poll::State::kDeferred) {  // it was a handler after all
    if (!runtime::is_polled(completion.poll().runtime, op.task.id)) {
      wake_for_poll(op, 0, op.created_ns);
    }
  }
  const std::uint64_t end_ns = runtime::poll_end(completion.poll());
  if (is_strand(op) && is_recording()) {
    g_strands.set(op.object, ObjectNote{end_ns != 0 ? end_ns : runtime::now_ns(), op.task.id,
                                        runtime::current_tid()});
  }
}

void op_left(Completion& completion) noexcept {
  if (completion.state_ != Completion::State::kNew) return completion.invocation_end();
  const Completion::Op& op = completion.op_;
  pop(op);
  if ((op.flags & kIsRoot) != 0 && (op.flags & kMayBeStrandTurn) == 0) {
    runtime::task_terminate(op.task.id);
  }
}

void object_operation(void* object, const char*) noexcept {
  if (!is_recording()) return;
  g_cancels.set(object, ObjectNote{runtime::now_ns(), runtime::polled_task(), 0});
}

void descriptor_registered(std::uintptr_t fd, std::uintptr_t registration) noexcept {
  map_registration(registration, fd < kMaxFd ? static_cast<std::uint32_t>(fd) : kNoFd);
}

void descriptor_deregistered(std::uintptr_t registration) noexcept {
  unmap_registration(registration);
}

void descriptor_ready(std::uintptr_t registration, unsigned events) noexcept {
  if (!is_recording()) return;
  const std::uint32_t fd = fd_of_registration(registration);
  if (fd == kNoFd) return;
  const bool is_error = (events & kErrorEvent) != 0;
  set_ready(fd, is_error || (events & kReadEvent) != 0, is_error || (events & kWriteEvent) != 0,
            runtime::now_ns());
}

// Under the descriptor's mutex. The first result that isn't "not yet" is the operation's; from here
// it goes to the queue. A connect reports nothing before it is done, so its tries say nothing.
void descriptor_tried(TrackedOp& op, const char*, int error) noexcept {
  constexpr int kWouldBlock = 11;
  if (op.site == nullptr || error == kWouldBlock || (op.flags & kIsAttempted) != 0) return;
  if (op.site->says_nothing_of_tries) return;
  const std::uint64_t event_ns = descriptor_event_ns(op);
  op.ready_ns = event_ns > op.created_ns ? event_ns : op.created_ns;
  op.flags = op.flags | kIsAttempted | kIsQueued;
  runtime::queue_pushed(op.runtime);
}

Location::Location(const char* file_, int line_, const char*) noexcept
    : file(file_), line(line_), outer(t_location) {
  t_location = this;
}

Location::~Location() { t_location = outer; }

}  // namespace dial9::asio::hooks
