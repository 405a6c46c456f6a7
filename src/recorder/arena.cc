// The arena's mapping, its free list and its counters: see arena.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/arena.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/os_error.h"
#include "format/wire.h"
#include "recorder/fork_child.h"
#include "recorder/guarded_fd.h"

namespace dial9::internal {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the hot path stores wire bytes as they are");

constexpr std::uint64_t kPageBytes = 4096;

constexpr std::uint64_t page_up(std::uint64_t n) {
  return (n + kPageBytes - 1) & ~(kPageBytes - 1);
}

struct Layout {
  std::uint64_t journal_offset;
  std::uint64_t loss_offset;
  std::uint64_t held_offset;
  std::uint64_t control_offset;
  std::uint64_t chunk_offset;
  std::uint64_t total_bytes;
};

Layout layout_of(std::uint32_t chunk_count) {
  Layout layout{};
  layout.journal_offset = kPageBytes;
  layout.loss_offset = page_up(layout.journal_offset + kJournalBytes);
  layout.held_offset = layout.loss_offset + sizeof(LossStripe) * kLossStripes;
  layout.control_offset = page_up(layout.held_offset + sizeof(std::uint32_t) * kHeldSlots);
  layout.chunk_offset =
      page_up(layout.control_offset + sizeof(ChunkControl) * std::uint64_t{chunk_count});
  layout.total_bytes = layout.chunk_offset + std::uint64_t{kChunkBytes} * chunk_count;
  return layout;
}

// Memory without a file. Its name is for /proc/PID/maps, where the kernel takes one.
void* map_anonymous(std::uint64_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
#ifdef PR_SET_VMA
  if (base != MAP_FAILED) {
    (void)::prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, base, bytes, "dial9-thread-buffers");
  }
#endif
  return base;
}

GuardedFd make_memory_file() {
  const ForkPause pause;
  return GuardedFd(::memfd_create("dial9-thread-buffers", MFD_CLOEXEC));
}

Result<GuardedFd> open_backing(const std::string& path, std::uint64_t bytes) {
  GuardedFd fd = path.empty() ? make_memory_file()
                              : GuardedFd::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  const std::string name = path.empty() ? "a memory file" : path;
  if (!fd) return os_error(errno, "create", name);
  // On a disk every block is reserved now: a store into a hole of a full disk would be a SIGBUS.
  const int error = path.empty()
                        ? (::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 ? 0 : errno)
                        : ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) {
    if (!path.empty()) ::unlink(path.c_str());
    return os_error(error, "reserve the thread buffers in", name, "give less arena_bytes");
  }
  return fd;
}

std::uint64_t clock_ns(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint32_t g_arena_serial = 0;

}  // namespace

bool is_thread_alive(std::uint32_t tid) {
  const long rc = ::syscall(SYS_tgkill, ::getpid(), static_cast<pid_t>(tid), 0);
  return rc == 0 || errno != ESRCH;
}

Arena::Arena(void* base, std::size_t bytes)
    : header_(static_cast<ArenaHeader*>(base)),
      controls_(nullptr),
      stripes_(nullptr),
      bytes_(bytes),
      serial_(__atomic_add_fetch(&g_arena_serial, 1, __ATOMIC_RELAXED)) {}

Arena::~Arena() { ::munmap(header_, bytes_); }

Result<std::unique_ptr<Arena>> Arena::create(const ArenaOptions& options) {
  const std::uint64_t wanted = options.bytes / kChunkBytes;
  const auto count = static_cast<std::uint32_t>(
      wanted<kMinChunks ? kMinChunks : wanted>(1U << 20) ? (1U << 20) : wanted);
  const Layout layout = layout_of(count);
  void* base = MAP_FAILED;
  if (options.path.empty() && options.is_anonymous) {
    base = map_anonymous(layout.total_bytes);
  } else {
    auto fd = open_backing(options.path, layout.total_bytes);
    if (!fd) return std::unexpected(fd.error());
    base = ::mmap(nullptr, layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
  }
  if (base == MAP_FAILED) {
    const int error = errno;
    if (!options.path.empty()) ::unlink(options.path.c_str());
    return os_error(error, "map", options.path.empty() ? "a memory file" : options.path);
  }
  std::unique_ptr<Arena> arena(new Arena(base, layout.total_bytes));
  ArenaHeader& header = *arena->header_;
  header.version = kArenaVersion;
  header.chunk_bytes = kChunkBytes;
  header.chunk_count = count;
  header.tables_bytes = sizeof(ChunkTables);
  header.loss_causes = kLossCauses;
  header.journal_offset = layout.journal_offset;
  header.loss_offset = layout.loss_offset;
  header.held_offset = layout.held_offset;
  header.control_offset = layout.control_offset;
  header.chunk_offset = layout.chunk_offset;
  header.total_bytes = layout.total_bytes;
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.burst_floor = count / 4;
  header.share_chunks =
      options.thread_bytes / kChunkBytes > 0 ? options.thread_bytes / kChunkBytes : 1;
  header.started_ns = clock_ns(CLOCK_MONOTONIC);
  header.started_realtime_ns = clock_ns(CLOCK_REALTIME);
  std::strncpy(header.boot_id, options.boot_id.c_str(), sizeof header.boot_id - 1);
  auto* bytes = static_cast<std::uint8_t*>(base);
  arena->controls_ = reinterpret_cast<ChunkControl*>(bytes + layout.control_offset);
  arena->stripes_ = reinterpret_cast<LossStripe*>(bytes + layout.loss_offset);
  arena->seen_ = std::make_unique<std::uint64_t[]>(count);
  arena->marks_ = std::make_unique<std::uint64_t[]>(arena->mark_groups());
  header.free_head = kNoChunk;
  arena->first_header_ = header;
  for (std::uint32_t i = count; i-- > 0;) arena->push(i);
  // Last: a reader from outside takes a mapping without it for one that was never finished.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, kArenaMagic, sizeof kArenaMagic);
  return arena;
}

Journal Arena::journal() const {
  return Journal(reinterpret_cast<JournalPage*>(reinterpret_cast<std::uint8_t*>(header_) +
                                                header_->journal_offset));
}

ChunkTables& Arena::tables(std::uint32_t chunk) const {
  auto* base = reinterpret_cast<std::uint8_t*>(header_);
  return *reinterpret_cast<ChunkTables*>(base + header_->chunk_offset +
                                         std::uint64_t{kChunkBytes} * chunk);
}

std::uint8_t* Arena::stream(std::uint32_t chunk) const {
  return reinterpret_cast<std::uint8_t*>(&tables(chunk)) + sizeof(ChunkTables);
}

std::uint32_t Arena::free_chunks() const {
  return __atomic_load_n(&header_->free_count, __ATOMIC_RELAXED);
}

std::uint32_t& Arena::held(std::uint32_t tid) const {
  auto* slots = reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uint8_t*>(header_) +
                                                 header_->held_offset);
  return slots[tid % kHeldSlots];
}

std::uint32_t Arena::pop() {
  std::uint64_t head = __atomic_load_n(&header_->free_head, __ATOMIC_ACQUIRE);
  for (;;) {
    const auto chunk = static_cast<std::uint32_t>(head);
    if (chunk == kNoChunk) return kNoChunk;
    // May be stale if the chunk is taken meanwhile; the tag makes the exchange fail then.
    const std::uint32_t next =
        __atomic_load_n(&controls_[chunk].collector.next_free, __ATOMIC_RELAXED);
    const std::uint64_t wanted = ((head >> 32) + 1) << 32 | next;
    if (__atomic_compare_exchange_n(&header_->free_head, &head, wanted, true, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
      __atomic_fetch_sub(&header_->free_count, 1, __ATOMIC_RELAXED);
      return chunk;
    }
  }
}

void Arena::push(std::uint32_t chunk) {
  __atomic_fetch_add(&header_->free_count, 1, __ATOMIC_RELAXED);
  std::uint64_t head = __atomic_load_n(&header_->free_head, __ATOMIC_RELAXED);
  std::uint64_t wanted = 0;
  do {
    __atomic_store_n(&controls_[chunk].collector.next_free, static_cast<std::uint32_t>(head),
                     __ATOMIC_RELAXED);
    wanted = ((head >> 32) + 1) << 32 | chunk;
    // Release: the chunk's cleared state goes before it (pairs with the acquire in pop()).
  } while (!__atomic_compare_exchange_n(&header_->free_head, &head, wanted, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

std::uint32_t Arena::take(std::uint32_t tid, std::uint64_t now_ns, LossCause* cause) {
  std::uint32_t& holds = held(tid);
  if (__atomic_load_n(&holds, __ATOMIC_RELAXED) >= header_->share_chunks &&
      free_chunks() <= header_->burst_floor) {
    *cause = free_chunks() == 0 ? LossCause::kArenaFull : LossCause::kThreadShare;
    return kNoChunk;
  }
  const std::uint32_t chunk = pop();
  if (chunk == kNoChunk) {
    *cause = LossCause::kArenaFull;
    return kNoChunk;
  }
  __atomic_fetch_add(&holds, 1, __ATOMIC_RELAXED);
  // Release: whoever sees it sees what this thread did to its chunk before (pairs with marked()).
  __atomic_fetch_or(&marks_[chunk / 64], std::uint64_t{1} << chunk % 64, __ATOMIC_ACQ_REL);
  std::memset(&tables(chunk), 0, sizeof(ChunkTables));
  tables(chunk).symbols[0] = kNoSymbol;
  std::uint8_t* bytes = stream(chunk);
  std::memcpy(bytes, format::kMagic, sizeof format::kMagic);
  bytes[sizeof format::kMagic] = format::kVersion;
  ChunkProducerLine& line = controls_[chunk].producer;
  line.opened_ns = now_ns;
  line.owner_tid = tid;
  ++line.sequence;
  // A reader from outside that sees bytes of this use sees its number too (arena_reader.h).
  __atomic_thread_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&line.state, kChunkOpen, __ATOMIC_RELEASE);
  return chunk;
}

void Arena::close(ChunkControl& control) {
  __atomic_store_n(&control.producer.state, kChunkClosed, __ATOMIC_RELEASE);
}

void Arena::free(std::uint32_t chunk) {
  ChunkControl& control = controls_[chunk];
  __atomic_fetch_sub(&held(control.producer.owner_tid), 1, __ATOMIC_RELAXED);
  // Never "open with nothing in it" for a reader from outside: free first, then cleared.
  __atomic_store_n(&control.producer.state, kChunkFree, __ATOMIC_RELEASE);
  __atomic_store_n(&control.collector.staged_position, std::uint64_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&control.producer.committed, std::uint64_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&control.collector.drained, std::uint64_t{0}, __ATOMIC_RELEASE);
  note_seen(chunk, 0);
  // Before another thread can take it, and mark it anew.
  __atomic_fetch_and(&marks_[chunk / 64], ~(std::uint64_t{1} << chunk % 64), __ATOMIC_RELEASE);
  push(chunk);
}

void Arena::count_loss(LossCause cause, std::uint64_t count, std::uint32_t tid,
                       std::uint64_t first_ns, std::uint64_t last_ns) {
  LossCounter& counter = stripes_[tid % kLossStripes].causes[static_cast<std::size_t>(cause)];
  std::uint64_t none = 0;
  __atomic_compare_exchange_n(&counter.first_ns, &none, first_ns, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
  __atomic_store_n(&counter.last_ns, last_ns, __ATOMIC_RELAXED);
  // Release: whoever sees the count sees its time range (pairs with loss_total).
  __atomic_fetch_add(&counter.count, count, __ATOMIC_RELEASE);
}

std::uint64_t Arena::loss_total(LossCause cause) const {
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < kLossStripes; ++i) {
    total += __atomic_load_n(&stripes_[i].causes[static_cast<std::size_t>(cause)].count,
                             __ATOMIC_ACQUIRE);
  }
  return total;
}

std::uint64_t Arena::loss_in_first_stripe(LossCause cause) const {
  return __atomic_load_n(&stripes_[0].causes[static_cast<std::size_t>(cause)].count,
                         __ATOMIC_RELAXED);
}

bool Arena::take_loss_range(LossCause cause, std::uint64_t* first_ns, std::uint64_t* last_ns) {
  *first_ns = ~std::uint64_t{0};
  *last_ns = 0;
  for (std::uint32_t i = 0; i < kLossStripes; ++i) {
    LossCounter& counter = stripes_[i].causes[static_cast<std::size_t>(cause)];
    const std::uint64_t first = __atomic_exchange_n(&counter.first_ns, 0, __ATOMIC_RELAXED);
    if (first == 0) continue;
    const std::uint64_t last = __atomic_load_n(&counter.last_ns, __ATOMIC_RELAXED);
    if (first < *first_ns) *first_ns = first;
    if (last > *last_ns) *last_ns = last;
  }
  if (*first_ns == ~std::uint64_t{0}) return false;
  if (*last_ns < *first_ns) *last_ns = *first_ns;
  return true;
}

std::uint64_t Arena::undrained_events() const {
  std::uint64_t events = 0;
  for (std::uint32_t i = 0; i < chunk_count(); ++i) {
    const ChunkControl& chunk = controls_[i];
    if (__atomic_load_n(&chunk.producer.state, __ATOMIC_ACQUIRE) == kChunkFree) continue;
    const std::uint64_t committed = __atomic_load_n(&chunk.producer.committed, __ATOMIC_ACQUIRE);
    events +=
        (committed >> 32) - (__atomic_load_n(&chunk.collector.drained, __ATOMIC_RELAXED) >> 32);
  }
  return events;
}

bool Arena::leave_file() noexcept {
  std::uint32_t none = 0;
  if (!__atomic_compare_exchange_n(&left_, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    return true;  // another thread does it: until then this one comes here again
  }
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(header_, bytes_, PROT_READ | PROT_WRITE, kKind, -1, 0) == MAP_FAILED) {
    __atomic_store_n(&left_, 0U, __ATOMIC_RELEASE);  // the fault goes to whoever handled it before
    return false;
  }
  // First: another thread that looks for a chunk finds none, whatever else it sees.
  __atomic_store_n(&header_->free_head, std::uint64_t{kNoChunk}, __ATOMIC_SEQ_CST);
  *header_ = first_header_;  // its free list is empty, too
  return true;
}

bool Arena::has_live_owner() {
  if (has_left_file()) return true;  // whose chunks they are is forgotten
  // The child of a fork shares these pages with its parent, whose threads it can't see: hands off.
  if (header_->pid != static_cast<std::uint32_t>(::getpid())) return false;
  bool has_any = false;
  for (std::uint32_t i = 0; i < chunk_count(); ++i) {
    ChunkControl& chunk = controls_[i];
    if (__atomic_load_n(&chunk.producer.state, __ATOMIC_ACQUIRE) != kChunkOpen) continue;
    if (is_thread_alive(chunk.producer.owner_tid)) {
      has_any = true;
    } else {
      close(chunk);
    }
  }
  return has_any;
}

}  // namespace dial9::internal
