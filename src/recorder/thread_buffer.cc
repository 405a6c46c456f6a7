// The cold ways out of the hot path: attach a thread, take a chunk, define schemas and strings,
// count a loss. All of it async-signal-safe after a thread's first event, none of it locks or
// allocates. Spec: docs/spec/recorder.md, "Thread buffers".
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/thread_buffer.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "dial9/internal/pool.h"
#include "dial9/internal/write_event.h"
#include "recorder/arena.h"
#include "recorder/burst_gate.h"
#include "recorder/fork_child.h"
#include "recorder/label_changes.h"
#include "recorder/recording_state.h"
#include "recorder/runtime_state.h"
#include "recorder/schema_frames.h"
#include "recorder/shedding.h"

namespace dial9::internal {

__thread ThreadBuffer t_buffer __attribute__((tls_model("initial-exec"))) = {};

namespace {

// What a thread without a chunk looks into: it knows nothing, so every event takes the cold path.
constexpr ChunkTables empty_tables() {
  ChunkTables tables{};
  tables.symbols[0] = kNoSymbol;
  return tables;
}
constinit ChunkTables g_empty_tables = empty_tables();

constinit std::uint32_t g_last_type = kFixedTypeIds;
constinit std::uint32_t g_last_symbol = 0;

// Of calls that came to their end when the recorder that they began under had none of its counters
// within reach any more.
constinit std::uint64_t g_late_losses = 0;

constinit pthread_key_t g_exit_key = 0;
constinit bool g_has_exit_key = false;

constexpr std::size_t kArenaUsers = sizeof(ForkPage::arena_users) / sizeof(ForkPage::Users);

// In the child of a fork that was made inside a record call (by a signal's handler): where that
// call publishes to when it goes on.
constinit ChunkControl g_nobodys_control{};

// Ids from a counter, once an object; a loser of the race wastes one.
std::uint32_t assign_id(std::uint32_t& id, std::uint32_t& last, std::uint32_t limit) noexcept {
  std::uint32_t known = __atomic_load_n(&id, __ATOMIC_RELAXED);
  if (known != 0) return known;
  if (__atomic_load_n(&last, __ATOMIC_RELAXED) + 1 >= limit) return 0;
  const std::uint32_t fresh = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  if (fresh >= limit) return 0;
  return __atomic_compare_exchange_n(&id, &known, fresh, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
             ? fresh
             : known;
}

void forget_chunk(ThreadBuffer& buffer) noexcept {
  buffer.end = nullptr;
  buffer.short_way_end = nullptr;
  buffer.events_before = buffer.events();
  buffer.written = 0;
  buffer.begin = nullptr;
  buffer.control = nullptr;
  buffer.tables = &g_empty_tables;
  buffer.poll_events_end = nullptr;
}

// The round of key destructors in which the chunk goes back. Others may record in each of them; the
// system's last one is left to what must come last of all (a sanitizer's own end of the thread).
constexpr std::uintptr_t kLastExitRound = PTHREAD_DESTRUCTOR_ITERATIONS - 1;

// The slot goes back in each round: a thread that is asked for the first time at its very end
// counts from 1 in a later round, and may never come to the last one. (Its chunk is found by the
// collector then.)
void on_thread_exit(void* rounds) noexcept {
  const auto round = reinterpret_cast<std::uintptr_t>(rounds);
  const bool is_last = round >= kLastExitRound;
  if (is_last) {
    tell_end_of_thread();
    t_buffer.is_exiting = 1;
    leave_chunk(t_buffer);
  } else {
    pthread_setspecific(g_exit_key, reinterpret_cast<void*>(round + 1));
  }
  leave_shed_slot();
}

void forget_parent_in_child() noexcept {
  g_fork_page = ForkPage{};  // where the kernel didn't
  const bool is_busy = t_buffer.ready_epoch == kBusyEpoch;
  t_buffer = ThreadBuffer{};  // its chunk is the parent's
  if (!is_busy) return;
  forget_chunk(t_buffer);
  t_buffer.control = &g_nobodys_control;
  t_buffer.ready_epoch = kBusyEpoch;
}

// What the thread has of a parent is forgotten, its chunk above all. Not inside a record call.
[[gnu::cold, gnu::noinline]] void begin_in_process(ThreadBuffer& buffer) noexcept {
  ThreadBuffer fresh{};
  fresh.ready_epoch = kBusyEpoch;
  fresh.process = process_number();
  fresh.is_exiting = buffer.is_exiting;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  buffer = fresh;
  signal_fence();
  buffer.ready_epoch = 0;
}

// A chunk of a parent's is left as it is: the parent's thread goes on in it.
void close_own_chunk(const ThreadBuffer& buffer) noexcept {
  if (buffer.control != nullptr && buffer.process == process_number()) {
    Arena::close(*buffer.control);
  }
}

// Never backwards within the thread: where the new line lies behind the last stamp that it gave
// out, the thread's own copy starts from there. Not from where the old line is by now: a thread
// that was idle for long gave none out since, and an old line drifts off. (The old line was current
// until the new epoch was seen, so that the two differ by nanoseconds then, which are gone at the
// next.)
void take_clock(ThreadBuffer& buffer) noexcept {
  ClockLine line = current_clock();
  if (line.mult != 0 && buffer.clock.mult != 0) {
    const std::uint64_t ticks = read_ticks();
    // A stamp of the caller's own may lie ahead of every clock.
    const std::uint64_t last =
        std::min(std::max(buffer.base_ns, buffer.read_ns), line_at(buffer.clock, ticks));
    if (line_at(line, ticks) < last) {
      line.tsc_base = ticks;
      line.ns_base = last;
    }
  }
  buffer.clock = line;
  buffer.set_short_way();
  if (line.mult == 0) buffer.poll_events_end = nullptr;  // the short way reads the counter
}

// The thread's line is of an epoch that is over.
[[gnu::cold, gnu::noinline]] void renew_clock(ThreadBuffer& buffer) noexcept {
  const std::uint32_t ready_epoch = buffer.ready_epoch;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  take_clock(buffer);
  signal_fence();
  buffer.ready_epoch = ready_epoch;
}

bool next_chunk(ThreadBuffer& buffer) noexcept {
  const ArenaHold hold(buffer.tid);
  Arena* arena = hold.get();
  const bool is_current = arena != nullptr && arena->serial() == buffer.arena_serial;
  if (buffer.control != nullptr) {
    if (is_current) charge_gate(*arena, *buffer.control);
    close_own_chunk(buffer);
    forget_chunk(buffer);
  }
  if (!is_current) {
    count_loss(LossCause::kTurnedOff);
    return false;
  }
  LossCause cause = LossCause::kArenaFull;
  const std::uint32_t chunk = arena->take(buffer.tid, now_on(buffer.clock), &cause);
  if (chunk == kNoChunk) {
    count_loss(cause);
    return false;
  }
  adopt_chunk(buffer, *arena, chunk);
  return true;
}

}  // namespace

ArenaHold::ArenaHold(std::uint32_t tid) noexcept
    : users_(g_fork_page.arena_users[tid % kArenaUsers].count) {
  // Sequentially consistent, as is the store of null in the recorder's stop: either that sees the
  // hold, or this sees null.
  __atomic_fetch_add(&users_, 1, __ATOMIC_SEQ_CST);
  arena_ = __atomic_load_n(&g_fork_page.arena, __ATOMIC_SEQ_CST);
}

ArenaHold::~ArenaHold() { __atomic_fetch_sub(&users_, 1, __ATOMIC_RELEASE); }

bool survive_cut_buffers(const void* address) noexcept {
  const ArenaHold hold(this_tid());
  if (hold.get() == nullptr || !hold.get()->holds(address)) return false;
  close_epoch();
  return hold.get()->leave_file();
}

bool watch_thread_exit() noexcept {
  // Beyond the first 32 keys glibc allocates, which a signal handler must not: such threads are
  // found by the collector when they are gone.
  if (!g_has_exit_key || g_exit_key >= 32) return false;
  const bool is_exiting = t_buffer.is_exiting != 0;
  // One that is set is the round that comes next, and stays.
  if (pthread_getspecific(g_exit_key) == nullptr) {
    const std::uintptr_t round = is_exiting ? kLastExitRound : 1;
    pthread_setspecific(g_exit_key, reinterpret_cast<void*>(round));
  }
  return !is_exiting;
}

std::uint32_t this_tid() noexcept {
  ThreadBuffer& buffer = t_buffer;
  if (buffer.tid != 0 && buffer.process == process_number()) return buffer.tid;
  const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  if (buffer.ready_epoch == kBusyEpoch) return tid;
  if (buffer.process != process_number()) begin_in_process(buffer);
  buffer.tid = tid;
  return tid;
}

void adopt_chunk(ThreadBuffer& buffer, Arena& arena, std::uint32_t chunk) noexcept {
  buffer.arena_serial = arena.serial();
  buffer.control = &arena.control(chunk);
  buffer.tables = &arena.tables(chunk);
  buffer.begin = arena.stream(chunk);
  buffer.end = buffer.begin + kChunkStreamBytes;
  buffer.set_short_way();
  buffer.set_written(0, buffer.begin + 5);  // behind the stream header
  buffer.base_ns = 0;
}

bool arena_is_unreferenced() noexcept {
  for (const ForkPage::Users& users : g_fork_page.arena_users) {
    if (__atomic_load_n(&users.count, __ATOMIC_SEQ_CST) != 0) return false;
  }
  return true;
}

namespace {

// A handler in between may have given out, and noted, a later time: that one stays.
void note_read(ThreadBuffer& buffer, std::uint64_t ns) noexcept {
  std::uint64_t noted = buffer.read_ns;
  while (noted < ns && !__atomic_compare_exchange_n(&buffer.read_ns, &noted, ns, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// By the thread's own line. A handler in between may give the thread a new one, which has another
// `tsc_base`. That is read first and compared last, so that a line of two halves is never used: 0.
// The time is noted before the comparison: a line that is taken later starts behind it.
[[gnu::always_inline]] inline std::uint64_t read_own_line(ThreadBuffer& buffer) noexcept {
  const std::uint64_t tsc_base = buffer.clock.tsc_base;
  signal_fence();
  const std::uint64_t ns = now_on({tsc_base, buffer.clock.ns_base, buffer.clock.mult});
  note_read(buffer, ns);
  signal_fence();
  return __builtin_expect(buffer.clock.tsc_base == tsc_base, 1) ? ns : 0;
}

// Of a thread that isn't ready for the epoch.
[[gnu::noinline]] std::uint64_t now_with_care(ThreadBuffer& buffer) noexcept {
  const std::uint32_t ready_epoch = buffer.ready_epoch;
  // Busy: this may be a signal handler, in the middle of a change of the thread's line.
  if (ready_epoch == kBusyEpoch || buffer.clock.mult == 0) return now_on(current_clock());
  const std::uint32_t epoch = recording_epoch() & ~kSheddingBit;
  if (__builtin_expect(ready_epoch != epoch || epoch == 0, 0)) renew_clock(buffer);
  for (;;) {
    if (const std::uint64_t ns = read_own_line(buffer)) return ns;
  }
}

}  // namespace

std::uint64_t now_ns() noexcept {
  ThreadBuffer& buffer = t_buffer;
  const std::uint32_t epoch = recording_epoch();
  // Ready is neither busy nor of an older line.
  if (__builtin_expect(buffer.ready_epoch == epoch && epoch != 0 && buffer.clock.mult != 0, 1)) {
    const std::uint64_t ns = read_own_line(buffer);
    if (__builtin_expect(ns != 0, 1)) return ns;
  }
  return now_with_care(buffer);
}

void leave_chunk(ThreadBuffer& buffer) noexcept {
  if (buffer.ready_epoch == kBusyEpoch) return;  // inside a record call that never returned
  // Until it is forgotten: a handler that records in between would write into a chunk that is the
  // collector's.
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  close_own_chunk(buffer);
  forget_chunk(buffer);
  buffer.arena_serial = 0;
  signal_fence();
  buffer.ready_epoch = 0;
}

bool install_process_hooks() noexcept {
  // Once, guarded by the recorder's start lock. Never undone: a thread may be inside
  // on_thread_exit.
  static constinit bool is_installed = false;
  if (!is_installed) {
    is_installed = true;
    g_has_exit_key = pthread_key_create(&g_exit_key, on_thread_exit) == 0;
    add_child_handler(forget_parent_in_child);
  }
  return g_has_exit_key;
}

// Inside, a signal handler's event is `nested`: what is counted here is counted once.
[[gnu::noinline]] static bool admits(ThreadBuffer& buffer, EventType& type,
                                     std::uint64_t task) noexcept {
  const std::uint32_t ready_epoch = buffer.ready_epoch;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  const bool is_admitted = keeps_event(type, task);
  signal_fence();
  buffer.ready_epoch = ready_epoch;
  return is_admitted;
}

bool thread_enter(ThreadBuffer& buffer, EventType& type, std::uint64_t task) noexcept {
  if (buffer.ready_epoch == kBusyEpoch) {
    count_loss(LossCause::kNested);
    return false;
  }
  const std::uint32_t marked_epoch = __atomic_load_n(&g_fork_page.epoch, __ATOMIC_ACQUIRE);
  const std::uint32_t epoch = marked_epoch & ~kSheddingBit;
  if (marked_epoch != epoch && !admits(buffer, type, task)) {
    buffer.last_loss = LossCause::kCount;
    return false;
  }
  if (epoch != 0 && buffer.ready_epoch == epoch) return true;
  t_state.counting_context = nullptr;
  const ArenaHold hold(this_tid());
  const Arena* arena = hold.get();
  if (epoch == 0 || arena == nullptr) {
    count_loss(LossCause::kTurnedOff);  // the caller saw it on
    return false;
  }
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  if (buffer.arena_serial != arena->serial()) {
    close_own_chunk(buffer);
    forget_chunk(buffer);
    buffer.clock = ClockLine{0, 0, 0};  // another recording, another clock
    buffer.base_ns = 0;
    buffer.read_ns = 0;
    watch_thread_exit();
    buffer.arena_serial = arena->serial();
  }
  take_clock(buffer);
  signal_fence();
  buffer.ready_epoch = epoch;
  return true;
}

bool thread_reserve(ThreadBuffer& buffer, EventType& type, std::size_t need) noexcept {
  const std::uint32_t id = assign_id(type.id, g_last_type, kMaxEventTypes);
  if (id == 0) {
    count_loss(LossCause::kTooManyTypes);
    return false;
  }
  const auto room = [&] { return static_cast<std::size_t>(buffer.end - buffer.cursor()); };
  const std::uint64_t bit = std::uint64_t{1} << (id % 64);
  // Every event comes here where the clock isn't the counter.
  if ((buffer.tables->schemas[id / 64] & bit) != 0 && room() >= need) return true;
  const std::size_t schema_bytes = schema_frame_bytes(type);
  if (need + schema_bytes + 5 > kChunkStreamBytes) {
    count_loss(LossCause::kTooLarge);
    return false;
  }
  for (;;) {
    std::uint64_t& word = buffer.tables->schemas[id / 64];
    const std::size_t total = need + ((word & bit) != 0 ? 0 : schema_bytes);
    if (room() >= total) {
      if ((word & bit) == 0) {
        __atomic_store_n(&type.head, event_head(id), __ATOMIC_RELAXED);
        buffer.move_cursor(write_schema_frames(buffer.cursor(), type, id));
        word |= bit;
      }
      return true;
    }
    if (!next_chunk(buffer)) return false;  // a fresh chunk holds it: the loop ends next time
  }
}

void count_loss(LossCause cause, std::uint64_t count) noexcept {
  t_buffer.last_loss = cause;
  const ArenaHold hold(this_tid());
  if (hold.get() == nullptr) {
    __atomic_fetch_add(&g_late_losses, count, __ATOMIC_RELAXED);
    return;
  }
  const std::uint64_t now = now_ns();
  hold.get()->count_loss(cause, count, t_buffer.tid, now, now);
}

std::uint32_t pool_define(ThreadBuffer& buffer, const interned& v) noexcept {
  std::uint32_t known = 0;
  if (pool_find(buffer, v, known)) return known;
  const char* data = v.symbol != nullptr ? v.symbol->text : v.data;
  const std::size_t size = v.symbol != nullptr ? std::strlen(data) : v.size;
  std::uint32_t id = 0;
  if (v.symbol != nullptr) id = assign_id(v.symbol->id, g_last_symbol, kChunkTextBit);
  const bool is_symbol = id != 0;
  if (!is_symbol) id = kChunkTextBit | ++buffer.tables->next_text;
  std::uint8_t* at = buffer.cursor();
  *at++ = 0x03;
  at = put_raw(at, std::uint32_t{1});
  at = put_raw(at, id);
  at = put_raw(at, static_cast<std::uint32_t>(size));
  if (is_symbol) {
    buffer.tables->symbols[id % kSymbolSlots] = id;
  } else if (v.symbol == nullptr) {
    const std::uint32_t hash = hash_text(data, size);
    buffer.tables->texts[hash % kTextSlots] = {
        hash, id, static_cast<std::uint32_t>(at - buffer.begin), static_cast<std::uint32_t>(size)};
  }
  buffer.move_cursor(put_block(at, data, size));
  return id;
}

std::uint32_t pool_define(ThreadBuffer& buffer, const callchain& v) noexcept {
  const std::uint32_t id = ++buffer.tables->next_stack;
  std::uint8_t* at = buffer.cursor();
  *at++ = 0x04;
  at = put_raw(at, std::uint32_t{1});
  at = put_raw(at, id);
  at = put_raw(at, static_cast<std::uint32_t>(v.count));
  buffer.move_cursor(put_block(at, v.frames, v.count * 8));
  return id;
}

std::uint64_t take_late_losses() noexcept {
  return __atomic_exchange_n(&g_late_losses, 0, __ATOMIC_RELAXED);
}

const char* loss_cause_name(LossCause cause) noexcept {
  switch (cause) {
    case LossCause::kArenaFull:
      return "arena_full";
    case LossCause::kThreadShare:
      return "thread_share";
    case LossCause::kNested:
      return "nested";
    case LossCause::kTooLarge:
      return "too_large";
    case LossCause::kTooManyTypes:
      return "too_many_types";
    case LossCause::kSpanTable:
      return "span_table";
    case LossCause::kWriteFailed:
      return "write_failed";
    case LossCause::kFileRemoved:
      return "file_removed";
    case LossCause::kInternal:
      return "internal";
    case LossCause::kTurnedOff:
      return "turned_off";
    case LossCause::kCount:
      break;
  }
  return "unknown";
}

}  // namespace dial9::internal
