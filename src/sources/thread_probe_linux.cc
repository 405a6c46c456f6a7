// See thread_probe.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/thread_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/os_error.h"
#include "base/unique_fd.h"
#include "dial9/internal/clock.h"
#include "recorder/fork_child.h"
#include "recorder/guarded_fd.h"
#include "sources/blocked_call.h"
#include "sources/futex_callers.h"
#include "sources/own_memory.h"
#include "sources/switch_watch.h"
#include "sources/thread_clock.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kMostFrames = 256;
constexpr std::size_t kFirstCopyBytes = std::size_t{16} << 10;
constexpr std::size_t kMostCopyBytes = std::size_t{256} << 10;  // of a deep stack

#ifdef __x86_64__  // its ABI: the word at the thread pointer is the thread pointer
constexpr bool kThreadPointerIsMarked = true;
#else
constexpr bool kThreadPointerIsMarked = false;
#endif

// Of all probes; a fork's child has none.
constinit std::uint32_t g_kept = 0;

void forget_kept_in_child() noexcept { __atomic_store_n(&g_kept, 0U, __ATOMIC_RELAXED); }

void watch_kept() {
  static const bool is_watched = add_child_handler(forget_kept_in_child);
  static_cast<void>(is_watched);
}

// A descriptor that is counted as kept.
class KeptFd {
 public:
  KeptFd() = default;
  explicit KeptFd(UniqueFd fd) : fd_(fd.release()), is_counted_(static_cast<bool>(fd_)) {
    if (is_counted_) __atomic_fetch_add(&g_kept, 1U, __ATOMIC_RELAXED);
    fd_.move_up();
  }
  ~KeptFd() {
    if (is_counted_) __atomic_fetch_sub(&g_kept, 1U, __ATOMIC_RELAXED);
  }
  KeptFd(KeptFd&& other) noexcept
      : fd_(std::move(other.fd_)), is_counted_(std::exchange(other.is_counted_, false)) {}
  KeptFd& operator=(KeptFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(is_counted_, other.is_counted_);
    return *this;
  }
  KeptFd(const KeptFd&) = delete;
  KeptFd& operator=(const KeptFd&) = delete;

  int get() const noexcept { return fd_.get(); }

 private:
  GuardedFd fd_;
  bool is_counted_ = false;
};

std::uint32_t own_tid() { return static_cast<std::uint32_t>(::syscall(SYS_gettid)); }

struct Text {
  std::array<char, 256> bytes{};
  std::size_t size = 0;
  std::string_view view() const { return {bytes.data(), size}; }
};

// errno of what failed; 0: read.
int read_text(int fd, Text& text) {
  const ssize_t got = ::pread(fd, text.bytes.data(), text.bytes.size(), 0);
  text.size = got > 0 ? static_cast<std::size_t>(got) : 0;
  return got < 0 ? errno : (got == 0 ? ESRCH : 0);
}

std::optional<SchedReading> parse_account(const Text& text) {
  SchedReading reading;
  if (!sched_parse(text.bytes.data(), text.size, &reading)) return std::nullopt;
  return reading;
}

class LinuxProbe final : public ThreadProbe {
 public:
  LinuxProbe(const PerfPlan* switches, const PerfPlan* stacks) {
    watch_kept();
    if (switches != nullptr) switches_ = std::make_unique<SwitchWatch>(*switches, stacks);
    rlimit limit{};
    room_ = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? kept_file_room(limit.rlim_cur) : 0;
    frames_.resize(kMostFrames);
    find_robust_offset();
    // Not by directory(): on the host's thread nothing is opened to be kept.
    const UniqueFd own(::open("/proc/thread-self/syscall", O_RDONLY | O_CLOEXEC));
    if (!own) call_error_ = errno;
    if (!charged_ns(own_tid()) && clock_error_ == 0) clock_error_ = EINVAL;  // of no thread
  }

  std::uint64_t now_ns() override { return internal::now_ns(); }
  std::uint64_t cpu_ns() override {
    timespec now{};
    if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }

  bool list(std::vector<std::uint32_t>* tids) override;
  std::optional<std::uint64_t> count() override;
  std::optional<SchedReading> account(std::uint32_t tid) override;
  bool has_ended() const override { return has_ended_; }
  std::optional<std::uint64_t> charged_ns(std::uint32_t tid) override;
  Look look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) override;
  std::optional<SocketHealth> socket_health(std::uint32_t tid, const SchedReading& reading,
                                            const BlockedThread& thread) override;
  std::string name(std::uint32_t tid) override;
  void forget(std::uint32_t tid) override;
  bool switches(std::uint32_t tid, std::vector<ThreadSwitch>* to,
                std::vector<SwitchStack>* stacks) override;
  SwitchCounts switch_counts() const override;
  std::string trouble() const override;

 private:
  int directory();
  UniqueFd open_of(std::uint32_t tid, std::string_view file);
  void find_robust_offset();
  void read_context(std::uint32_t tid, ForeignContext* context);
  // With at most `most` bytes of the stack. False: too few for the walk, and more may do.
  bool walk(const SyscallText& call, std::size_t most, BlockedThread* thread);
  // The instruction before `pc` is a system call's.
  bool is_behind_call(std::uint64_t pc);
  static bool copy_words(void* self, std::span<const ThreadWordPart> parts);

  std::unique_ptr<SwitchWatch> switches_;
  std::uint32_t room_ = 0;
  KeptFd directory_;                                    // /proc/self/task
  std::unordered_map<std::uint32_t, KeptFd> accounts_;  // by thread; the host may close them
  OwnMemory memory_;
  // Pages of it are touched as far as stacks are deep.
  std::unique_ptr<std::byte[]> stack_ = std::make_unique_for_overwrite<std::byte[]>(kMostCopyBytes);
  std::vector<std::uint64_t> frames_;
  std::uint64_t robust_offset_ = 0;  // of a thread's robust list from its thread pointer
  bool knows_robust_offset_ = false;
  bool has_ended_ = false;
  int call_error_ = 0;   // the last look at a call failed with it
  int stack_error_ = 0;  // and the last copy of a stack
  int clock_error_ = 0;  // threads' CPU clocks are refused with it, and not asked for again
};

int LinuxProbe::directory() {
  if (const int fd = directory_.get(); fd >= 0) return fd;
  directory_ = KeptFd(UniqueFd(::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  return directory_.get();
}

UniqueFd LinuxProbe::open_of(std::uint32_t tid, std::string_view file) {
  char path[32] = {};
  char* const end = std::to_chars(path, path + 10, tid).ptr;
  std::ranges::copy(file.substr(0, 20), end);
  return UniqueFd(::openat(directory(), path, O_RDONLY | O_CLOEXEC));
}

bool LinuxProbe::list(std::vector<std::uint32_t>* tids) {
  tids->clear();
  const int fd = directory();
  if (fd < 0 || ::lseek(fd, 0, SEEK_SET) != 0) return false;
  const std::uint32_t own = own_tid();
  alignas(dirent64) std::array<char, 8192> entries;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, fd, entries.data(), entries.size());
    if (got < 0) return false;
    if (got == 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      std::uint32_t tid = 0;
      const char* const end = entry->d_name + std::strlen(entry->d_name);
      const auto [stop, error] = std::from_chars(entry->d_name, end, tid);
      if (error == std::errc() && stop == end && tid != own) tids->push_back(tid);
      at += entry->d_reclen;
    }
  }
  std::ranges::sort(*tids);
  tids->erase(std::unique(tids->begin(), tids->end()), tids->end());
  if (switches_ != nullptr) switches_->follow(*tids, own, now_ns());
  return true;
}

// The directory of a process's threads has two links and one for each thread.
std::optional<std::uint64_t> LinuxProbe::count() {
  constexpr std::uint64_t kOwnLinks = 2;
  struct stat status;
  if (switches_ != nullptr || ::fstat(directory(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_nlink <= kOwnLinks) {
    return std::nullopt;
  }
  return status.st_nlink - kOwnLinks;
}

SwitchCounts LinuxProbe::switch_counts() const {
  if (switches_ == nullptr) return {};
  const PerfCounts& counts = switches_->counts();
  SwitchCounts all{counts.sampled, counts.refused, switches_->lost()};
  if (const SwitchStacks* const stacks = switches_->stacks()) {
    all.stacks = stacks->taken();
    all.stacks_lost = stacks->lost();
  }
  return all;
}

// A stack whose leaf made a system call under a lock's or a condition's function waits for it.
bool LinuxProbe::switches(std::uint32_t tid, std::vector<ThreadSwitch>* to,
                          std::vector<SwitchStack>* stacks) {
  if (switches_ == nullptr || !switches_->take(tid, to, stacks)) return false;
  for (SwitchStack& stack : *stacks) {
    const std::string_view cause = switch_cause(stack.argument, stack.frames);
    if (!cause.empty() && is_behind_call(stack.frames.front())) stack.cause = cause;
  }
  return true;
}

// Of x86-64, as the stacks of switches are.
bool LinuxProbe::is_behind_call(std::uint64_t pc) {
  constexpr std::array<std::uint8_t, 2> kSyscall = {0x0f, 0x05};
  std::array<std::uint8_t, 2> code{};
  return memory_.copy(pc - code.size(), code.data(), code.size()) == 2 && code == kSyscall;
}

std::optional<SchedReading> LinuxProbe::account(std::uint32_t tid) {
  Text text;
  has_ended_ = false;
  const auto known = accounts_.find(tid);
  if (known != accounts_.end()) {
    if (const int kept = known->second.get(); kept >= 0) {
      const int error = read_text(kept, text);
      if (error == 0) return parse_account(text);
      // Kept until forget(): whoever asks next hears the same, whoever has the id by then.
      has_ended_ = error == ESRCH;
      if (!has_ended_) accounts_.erase(known);
      return std::nullopt;
    }
    accounts_.erase(known);
  }
  UniqueFd fd = open_of(tid, "/schedstat");
  if (!fd || read_text(fd.get(), text) != 0) return std::nullopt;
  if (accounts_.size() < room_ && kept_files() <= kMostKeptFiles)
    accounts_.emplace(tid, KeptFd(std::move(fd)));
  return parse_account(text);
}

std::optional<std::uint64_t> LinuxProbe::charged_ns(std::uint32_t tid) {
  if (clock_error_ != 0) return std::nullopt;
  const auto charged_ns = read_cpu_clock(tid);
  if (!charged_ns && errno != EINVAL) clock_error_ = errno;  // that one: the thread ended
  return charged_ns;
}

void LinuxProbe::forget(std::uint32_t tid) { accounts_.erase(tid); }

std::string LinuxProbe::name(std::uint32_t tid) {
  Text text;
  const UniqueFd fd = open_of(tid, "/comm");
  if (!fd || read_text(fd.get(), text) != 0) return {};
  std::string_view name = text.view();
  while (!name.empty() && name.back() == '\n') name.remove_suffix(1);
  return std::string(name);
}

// glibc puts the list's head into its thread descriptor, at one distance from the thread pointer in
// every thread; the kernel tells where a thread's head is.
void LinuxProbe::find_robust_offset() {
  void* head = nullptr;
  std::size_t bytes = 0;
  if (::syscall(SYS_get_robust_list, 0, &head, &bytes) != 0 || head == nullptr) return;
  robust_offset_ = reinterpret_cast<std::uintptr_t>(head) - own_thread_pointer();
  knows_robust_offset_ = true;
}

bool LinuxProbe::copy_words(void* self, std::span<const ThreadWordPart> parts) {
  auto& memory = static_cast<LinuxProbe*>(self)->memory_;
  std::array<iovec, 8> local;
  std::array<iovec, 8> remote;
  const std::size_t count = std::min(parts.size(), local.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    local[i] = {parts[i].to, parts[i].bytes};
    remote[i] = {reinterpret_cast<void*>(parts[i].address), parts[i].bytes};
    bytes += parts[i].bytes;
  }
  if (count == parts.size() &&
      memory.copy_all({local.data(), count}, {remote.data(), count}, bytes)) {
    return true;
  }
  return std::ranges::all_of(parts, [&](const ThreadWordPart& part) {
    return memory.copy(part.address, part.to, part.bytes) == part.bytes;
  });
}

void LinuxProbe::read_context(std::uint32_t tid, ForeignContext* context) {
  *context = {};
  void* head = nullptr;
  std::size_t bytes = 0;
  if (!knows_robust_offset_ || ::syscall(SYS_get_robust_list, tid, &head, &bytes) != 0) return;
  if (head == nullptr) return;
  const std::uint64_t base = reinterpret_cast<std::uintptr_t>(head) - robust_offset_;
  // A list that the thread registered for itself would lead elsewhere: the ABI's mark of a thread
  // pointer says so, where there is one.
  std::uint64_t mark = 0;
  if (kThreadPointerIsMarked && (memory_.copy(base, &mark, 8) != 8 || mark != base)) return;
  ForeignContext found;
  if (read_foreign_context(base, tid, copy_words, this, &found)) *context = found;
}

bool LinuxProbe::walk(const SyscallText& call, std::size_t most, BlockedThread* thread) {
  const std::size_t size = memory_.copy(call.sp, stack_.get(), most);
  thread->frames.clear();
  thread->unwound_by = {};
  if (size < 8) {
    stack_error_ = memory_.error();
    return true;
  }
  const unwind::StackCopy copy{.pc = call.pc,
                               .sp = call.sp,
                               .fp = 0,
                               .has_fp = false,
                               .address = call.sp,
                               .bytes = {stack_.get(), size}};
  const unwind::Result result = unwind::unwind_copy(copy, frames_);
  if (result.truncated() && size == most && most < kMostCopyBytes) return false;
  thread->frames.assign(frames_.begin(), frames_.begin() + result.count);
  thread->unwound_by = unwind::method_name(result.method);
  thread->is_truncated = result.truncated();
  thread->has_guessed_fp = result.has_guessed_fp;
  return true;
}

Look LinuxProbe::look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) {
  const UniqueFd fd = open_of(tid, "/syscall");
  Text before;
  const int error = fd ? read_text(fd.get(), before) : errno;
  if (error != 0) {
    if (error != ESRCH && error != ENOENT) call_error_ = error;  // those two: the thread ended
    return Look::kUnreadable;
  }
  const auto call = parse_blocked_call(before.view());
  if (!call) return Look::kUnreadable;
  if (call->is_running) return Look::kRunning;
  if (!walk(*call, kFirstCopyBytes, thread)) walk(*call, kMostCopyBytes, thread);
  read_context(tid, &thread->context);
  const BlockedCall described = describe_call(*call, fd_kind);
  thread->call = described.name;
  thread->cause =
      described.name == "futex" ? futex_cause(call->args[1], thread->frames) : described.cause;
  thread->fd = described.fd;
  thread->object = described.object;
  const bool has_socket = described.fd && described.cause == "socket";
  thread->peer = has_socket ? peer_of(*described.fd) : "";
  thread->socket = has_socket ? connection_cookie(static_cast<int>(*described.fd)) : std::nullopt;
  thread->at_ns = now_ns();
  Text after;
  if (read_text(fd.get(), after) != 0 || after.view() != before.view()) return Look::kMoved;
  const auto again = account(tid);
  if (!again || again->slices != reading.slices) return Look::kMoved;
  return Look::kBlocked;
}

std::optional<SocketHealth> LinuxProbe::socket_health(std::uint32_t tid,
                                                      const SchedReading& reading,
                                                      const BlockedThread& thread) {
  if (!thread.fd || !thread.socket) return std::nullopt;
  const auto health = read_socket_health(static_cast<int>(*thread.fd), *thread.socket);
  const auto again = account(tid);
  return again && again->slices == reading.slices ? health : std::nullopt;
}

std::string LinuxProbe::trouble() const {
  std::string text;
  if (call_error_ != 0) {
    text = os_error(call_error_, "read", "/proc/self/task/T/syscall",
                    "off-CPU stacks unavailable; times from schedstat only")
               .error()
               .message;
  } else if (stack_error_ != 0) {
    text = os_error(stack_error_, "copy", "a thread's stack",
                    "off-CPU samples carry calls without stacks")
               .error()
               .message;
  }
  if (clock_error_ != 0) {
    text += (text.empty() ? "" : "; ") +
            os_error(clock_error_, "read", "the CPU clock of a thread",
                     "looks at threads that rest read files, which takes thrice as long")
                .error()
                .message;
  }
  if (switches_ != nullptr && !switches_->refusal().empty()) {
    text += (text.empty() ? "" : "; ") + switches_->refusal() +
            "; threads whose switches aren't followed are only looked at";
  }
  const SwitchStacks* const stacks = switches_ != nullptr ? switches_->stacks() : nullptr;
  if (stacks != nullptr && !stacks->refusal().empty()) {
    text += (text.empty() ? "" : "; ") + stacks->refusal() +
            "; switches of these threads are followed without stacks";
  }
  return text;
}

}  // namespace

std::unique_ptr<ThreadProbe> make_thread_probe(const PerfPlan* switches, const PerfPlan* stacks) {
  return std::make_unique<LinuxProbe>(switches, stacks);
}

std::uint32_t kept_file_room(std::uint64_t soft_limit) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(soft_limit / 32, kMostKeptFiles));
}

std::uint32_t kept_files() noexcept { return __atomic_load_n(&g_kept, __ATOMIC_RELAXED); }

}  // namespace dial9::internal
