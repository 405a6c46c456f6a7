// The cold ways out of the hot path: attach a thread, take a chunk, define schemas and strings,
// count a loss. All of it async-signal-safe after a thread's first event, none of it locks or
// allocates. Spec: docs/spec/recorder.md, "Thread buffers".
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/thread_buffer.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "dial9/internal/pool.h"
#include "dial9/internal/write_event.h"
#include "recorder/arena.h"
#include "recorder/recording_state.h"
#include "recorder/schema_frames.h"
#include "recorder/shedding.h"

namespace dial9::internal {

constinit std::uint32_t g_epoch = 0;
__thread ThreadBuffer t_buffer __attribute__((tls_model("initial-exec"))) = {};
constinit Arena* g_arena = nullptr;
constinit ForkHook g_fork_hook = nullptr;

namespace {

// What a thread without a chunk looks into: it knows nothing, so every event takes the cold path.
constinit ChunkTables g_empty_tables{};

constinit std::uint32_t g_last_epoch = 0;
constinit std::uint32_t g_epoch_bits = 0;  // of every epoch that is opened
constinit std::uint32_t g_last_type = kFixedTypeIds;
constinit std::uint32_t g_last_symbol = 0;

// A sequence lock over the clock line: odd while it is being written.
constinit std::uint32_t g_clock_version = 0;
constinit ClockLine g_clock{0, 0, 0};

constinit pthread_key_t g_exit_key = 0;
constinit bool g_has_exit_key = false;

// Threads that may hold a pointer to the arena from g_arena, by thread id: an arena is unmapped
// only when none is left (arena_is_unreferenced).
struct alignas(64) ArenaUsers {
  std::uint32_t count;
};
constinit ArenaUsers g_arena_users[16] = {};

std::uint32_t next_epoch() noexcept {
  std::uint32_t epoch = 0;
  do {
    epoch = __atomic_add_fetch(&g_last_epoch, 1, __ATOMIC_RELAXED) & ~kSheddingBit;
  } while (epoch == 0);
  return epoch | __atomic_load_n(&g_epoch_bits, __ATOMIC_RELAXED);
}

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
  buffer.cursor = nullptr;
  buffer.end = nullptr;
  buffer.begin = nullptr;
  buffer.control = nullptr;
  buffer.tables = &g_empty_tables;
  buffer.poll_events_end = nullptr;
}

// The round of key destructors in which the chunk goes back. Others may record in each of them; the
// system's last one is left to what must come last of all (a sanitizer's own end of the thread).
constexpr std::uintptr_t kLastExitRound = PTHREAD_DESTRUCTOR_ITERATIONS - 1;

void on_thread_exit(void* rounds) noexcept {
  const auto round = reinterpret_cast<std::uintptr_t>(rounds);
  if (round < kLastExitRound) {
    pthread_setspecific(g_exit_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  t_buffer.is_exiting = 1;
  leave_chunk(t_buffer);
  leave_shed_slot();
}

void on_fork_in_child() noexcept {
  __atomic_store_n(&g_epoch, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&g_epoch_bits, 0, __ATOMIC_RELAXED);  // the parent's shedding isn't the child's
  __atomic_store_n(&g_arena, static_cast<Arena*>(nullptr), __ATOMIC_RELAXED);
  t_buffer = ThreadBuffer{};  // its chunk is the parent's
  if (g_fork_hook != nullptr) g_fork_hook();
}

void watch_thread_exit() noexcept {
  // Beyond the first 32 keys glibc allocates, which a signal handler must not: such threads are
  // found by the collector when they are gone.
  if (g_has_exit_key && g_exit_key < 32) {
    const std::uintptr_t round = t_buffer.is_exiting != 0 ? kLastExitRound : 1;
    pthread_setspecific(g_exit_key, reinterpret_cast<void*>(round));
  }
}

// Never backwards within the thread: where the new line lies behind what the old one says now, the
// thread's own copy starts from there.
void take_clock(ThreadBuffer& buffer) noexcept {
  ClockLine line = current_clock();
  if (line.mult != 0 && buffer.clock.mult != 0) {
    const std::uint64_t ticks = read_ticks();
    const std::uint64_t before = line_at(buffer.clock, ticks);
    if (line_at(line, ticks) < before) {
      line.tsc_base = ticks;
      line.ns_base = before;
    }
  }
  buffer.clock = line;
  if (line.mult == 0) buffer.poll_events_end = nullptr;  // the short way reads the counter
}

bool next_chunk(ThreadBuffer& buffer) noexcept {
  const ArenaHold hold(buffer.tid);
  Arena* arena = hold.get();
  if (buffer.control != nullptr) {
    Arena::close(*buffer.control);
    forget_chunk(buffer);
  }
  if (arena == nullptr || arena->serial() != buffer.arena_serial)
    return false;  // stopped meanwhile
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

ArenaHold::ArenaHold(std::uint32_t tid) noexcept : users_(g_arena_users[tid % 16].count) {
  // Sequentially consistent, as is the store of null in the recorder's stop: either that sees the
  // hold, or this sees null.
  __atomic_fetch_add(&users_, 1, __ATOMIC_SEQ_CST);
  arena_ = __atomic_load_n(&g_arena, __ATOMIC_SEQ_CST);
}

ArenaHold::~ArenaHold() { __atomic_fetch_sub(&users_, 1, __ATOMIC_RELEASE); }

std::uint32_t this_tid() noexcept {
  if (t_buffer.tid == 0) t_buffer.tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return t_buffer.tid;
}

void adopt_chunk(ThreadBuffer& buffer, Arena& arena, std::uint32_t chunk) noexcept {
  buffer.arena_serial = arena.serial();
  buffer.control = &arena.control(chunk);
  buffer.tables = &arena.tables(chunk);
  buffer.begin = arena.stream(chunk);
  buffer.end = buffer.begin + kChunkStreamBytes;
  buffer.cursor = buffer.begin + 5;  // behind the stream header
  buffer.base_ns = 0;
  buffer.event_count = 0;
}

void open_epoch() noexcept { __atomic_store_n(&g_epoch, next_epoch(), __ATOMIC_RELEASE); }
void close_epoch() noexcept { __atomic_store_n(&g_epoch, 0, __ATOMIC_SEQ_CST); }
void renew_epoch() noexcept {
  std::uint32_t epoch = __atomic_load_n(&g_epoch, __ATOMIC_RELAXED);
  if (epoch == 0) return;
  // Fails if someone disabled or renewed it meanwhile: then there is nothing to do.
  __atomic_compare_exchange_n(&g_epoch, &epoch, next_epoch(), false, __ATOMIC_RELEASE,
                              __ATOMIC_RELAXED);
}

void mark_epoch(std::uint32_t bits) noexcept {
  __atomic_store_n(&g_epoch_bits, bits, __ATOMIC_RELAXED);
  std::uint32_t epoch = __atomic_load_n(&g_epoch, __ATOMIC_RELAXED);
  while (epoch != 0 && (epoch & kSheddingBit) != bits) {
    // Fails where someone enables or disables meanwhile: looks again at what that left. Release
    // pairs with the acquire load in thread_enter(): who sees the bit sees the rates.
    if (__atomic_compare_exchange_n(&g_epoch, &epoch, (epoch & ~kSheddingBit) | bits, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

bool arena_is_unreferenced() noexcept {
  for (const ArenaUsers& users : g_arena_users) {
    if (__atomic_load_n(&users.count, __ATOMIC_SEQ_CST) != 0) return false;
  }
  return true;
}

void publish_clock(const ClockLine& line) noexcept {
  const std::uint32_t version = __atomic_load_n(&g_clock_version, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock_version, version + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&g_clock.tsc_base, line.tsc_base, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock.ns_base, line.ns_base, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock.mult, line.mult, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock_version, version + 2, __ATOMIC_RELEASE);
}

ClockLine current_clock() noexcept {
  // A reader that keeps meeting a writer (it would have to be interrupted each time) reads the
  // kernel's clock rather than wait: it may be a signal handler on the writer's own thread.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint32_t before = __atomic_load_n(&g_clock_version, __ATOMIC_ACQUIRE);
    ClockLine line{};
    line.tsc_base = __atomic_load_n(&g_clock.tsc_base, __ATOMIC_RELAXED);
    line.ns_base = __atomic_load_n(&g_clock.ns_base, __ATOMIC_RELAXED);
    line.mult = __atomic_load_n(&g_clock.mult, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if ((before & 1) == 0 && __atomic_load_n(&g_clock_version, __ATOMIC_RELAXED) == before) {
      return line;
    }
  }
  return ClockLine{0, 0, 0};
}

std::uint64_t now_ns() noexcept {
  // Busy: this may be a signal handler, in the middle of a change of the thread's line.
  const bool has_line = t_buffer.clock.mult != 0 && t_buffer.ready_epoch != kBusyEpoch;
  return has_line ? thread_now_ns() : now_on(current_clock());
}

void leave_chunk(ThreadBuffer& buffer) noexcept {
  if (buffer.ready_epoch == kBusyEpoch) return;  // inside a record call that never returned
  buffer.ready_epoch = 0;
  signal_fence();
  if (buffer.control != nullptr) Arena::close(*buffer.control);
  forget_chunk(buffer);
  buffer.arena_serial = 0;
}

bool install_process_hooks() noexcept {
  // Once, guarded by the recorder's start lock. Never undone: a thread may be inside
  // on_thread_exit.
  static constinit bool is_installed = false;
  if (!is_installed) {
    is_installed = true;
    g_has_exit_key = pthread_key_create(&g_exit_key, on_thread_exit) == 0;
    pthread_atfork(nullptr, nullptr, on_fork_in_child);
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
  const std::uint32_t marked_epoch = __atomic_load_n(&g_epoch, __ATOMIC_ACQUIRE);
  const std::uint32_t epoch = marked_epoch & ~kSheddingBit;
  if (marked_epoch != epoch && !admits(buffer, type, task)) return false;
  if (epoch != 0 && buffer.ready_epoch == epoch) return true;
  const ArenaHold hold(this_tid());
  const Arena* arena = hold.get();
  if (epoch == 0 || arena == nullptr) return false;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  if (buffer.arena_serial != arena->serial()) {
    if (buffer.control != nullptr) Arena::close(*buffer.control);
    forget_chunk(buffer);
    buffer.clock = ClockLine{0, 0, 0};
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
  const std::size_t schema_bytes = schema_frame_bytes(type);
  if (need + schema_bytes + 5 > kChunkStreamBytes) {
    count_loss(LossCause::kTooLarge);
    return false;
  }
  for (;;) {
    std::uint64_t& word = buffer.tables->schemas[id / 64];
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    const std::size_t total = need + ((word & bit) != 0 ? 0 : schema_bytes);
    if (static_cast<std::size_t>(buffer.end - buffer.cursor) >= total) {
      if ((word & bit) == 0) {
        buffer.cursor = write_schema_frames(buffer.cursor, type, id);
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
  if (hold.get() == nullptr) return;
  const std::uint64_t now = now_ns();
  hold.get()->count_loss(cause, count, t_buffer.tid, now, now);
}

std::uint32_t pool_define(ThreadBuffer& buffer, const interned& v) noexcept {
  const std::uint32_t known = pool_find(buffer, v);
  if (known != 0) return known;
  const char* data = v.symbol != nullptr ? v.symbol->text : v.data;
  const std::size_t size = v.symbol != nullptr ? std::strlen(data) : v.size;
  std::uint32_t id = 0;
  if (v.symbol != nullptr) id = assign_id(v.symbol->id, g_last_symbol, kChunkTextBit);
  const bool is_symbol = id != 0;
  if (!is_symbol) id = kChunkTextBit | ++buffer.tables->next_text;
  std::uint8_t* at = buffer.cursor;
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
  buffer.cursor = put_block(at, data, size);
  return id;
}

std::uint32_t pool_define(ThreadBuffer& buffer, const callchain& v) noexcept {
  const std::uint32_t id = ++buffer.tables->next_stack;
  std::uint8_t* at = buffer.cursor;
  *at++ = 0x04;
  at = put_raw(at, std::uint32_t{1});
  at = put_raw(at, id);
  at = put_raw(at, static_cast<std::uint32_t>(v.count));
  buffer.cursor = put_block(at, v.frames, v.count * 8);
  return id;
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
    case LossCause::kCount:
      break;
  }
  return "unknown";
}

}  // namespace dial9::internal
