// See resources.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/resources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <exception>
#include <memory>

#include "base/descriptor_numbers.h"
#include "base/unique_fd.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "recorder/process_registry.h"
#include "sources/thread_clock.h"

namespace dial9 {
namespace internal {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kIoNs = 5 * kSecond;       // the kernel asks each thread
constexpr std::uint64_t kStatusNs = 30 * kSecond;  // the kernel writes 60 lines
constexpr std::uint64_t kLimitsNs = 60 * kSecond;  // limits seldom change, and take several files
constexpr std::uint64_t kListNs = 10 * kSecond;    // where threads came or went, else:
constexpr std::uint64_t kListAnywayNs = 60 * kSecond;

std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

template <class Field>
void set(Field* field, MaybeNumber number, std::uint64_t times = 1) {
  if (number) *field = *number * times;
}

std::string thread_name(const std::string& root, std::uint32_t tid) {
  const std::string path = root + "/proc/self/task/" + std::to_string(tid) + "/comm";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : 0;
  std::string name(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// Ids of the process's threads, sorted; at most kMostThreads.
std::vector<std::uint32_t> thread_ids(const std::string& root) {
  std::vector<std::uint32_t> ids;
  const UniqueFd directory(
      ::open((root + "/proc/self/task").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr std::size_t kSizeAt = 16;
  constexpr std::size_t kNameAt = 19;
  std::array<char, 4096> bytes;
  while (directory && ids.size() < kMostThreads) {
    const long n = ::syscall(SYS_getdents64, directory.get(), bytes.data(), bytes.size());
    if (n <= 0) break;
    for (long at = 0; at < n && ids.size() < kMostThreads;) {
      std::uint16_t size = 0;
      std::memcpy(&size, bytes.data() + at + kSizeAt, sizeof size);
      const std::string_view name(bytes.data() + at + kNameAt);
      std::uint32_t tid = 0;
      std::from_chars(name.data(), name.data() + name.size(), tid);
      if (tid != 0) ids.push_back(tid);
      at += size;
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

ResourceSeams resource_seams() {
  return {"", [] { return read_clock(CLOCK_MONOTONIC); }, read_cpu_clock};
}

Resources::Resources(ResourceSeams seams)
    : seams_(std::move(seams)),
      cgroup_(find_cgroup_files(seams_.root)),
      process_pace_(kSecond),
      status_(seams_.root + "/proc/self/status", kStatusNs),
      statm_(seams_.root + "/proc/self/statm", kSecond),
      io_(seams_.root + "/proc/self/io", kIoNs),
      descriptor_directory_(seams_.root + "/proc/self/fd"),
      thread_directory_(seams_.root + "/proc/self/task"),
      cpu_stat_(cgroup_.cpu_stat, kSecond),
      cpu_usage_(cgroup_.cpu_usage, kSecond),
      memory_usage_(cgroup_.memory_usage, kSecond),
      memory_events_(cgroup_.memory_events, kSecond),
      list_pace_(kListNs) {}

// The directory of a process's threads has two links and one for each thread.
MaybeNumber Resources::count_threads() {
  constexpr std::uint64_t kOwnLinks = 2;
  struct stat status;
  if (!thread_directory_.status(&status) || !S_ISDIR(status.st_mode)) return std::nullopt;
  const std::uint64_t links = status.st_nlink;
  return links > kOwnLinks ? MaybeNumber(links - kOwnLinks) : std::nullopt;
}

// Kernels since 6.2 say it as the directory's size; none else, since counting costs by descriptor.
MaybeNumber Resources::count_descriptors() {
  struct stat status;
  if (!descriptor_directory_.status(&status) || !S_ISDIR(status.st_mode) || status.st_size <= 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(status.st_size);
}

// All in words.
void Resources::read_status(std::uint64_t now_ns, ProcessDetailEvent* event) {
  constexpr std::uint64_t kKib = 1'024;
  const MaybeNumber threads_before = count_threads();
  const std::string_view status = status_.read(now_ns, seams_.cost_clock_ns);
  const MaybeNumber anon = find_number(status, "RssAnon:");
  const MaybeNumber threads = find_number(status, "Threads:");
  set(&event->rss_anon_bytes, anon, kKib);
  const MaybeNumber file = find_number(status, "RssFile:");
  const MaybeNumber shmem = find_number(status, "RssShmem:");
  set(&event->rss_file_bytes, file, kKib);
  set(&event->rss_shmem_bytes, shmem, kKib);
  if (file && shmem) event->rss_shared_bytes = (*file + *shmem) * kKib;
  set(&event->swap_bytes, find_number(status, "VmSwap:"), kKib);
  set(&event->threads, threads);
  has_memory_split_ = anon.has_value();
  // A thread may come or go between the looks.
  has_thread_count_ = threads && (threads_before == threads || count_threads() == threads);
  threads_now_ = threads;
}

// The same by cheaper ways, where this kernel has been seen to have them.
void Resources::read_cheaply(std::uint64_t now_ns, const std::optional<Pages>& read,
                             ProcessDetailEvent* event) {
  if (has_memory_split_) {
    const Pages pages =
        read ? *read : parse_statm(statm_.read_if_due(now_ns, seams_.cost_clock_ns));
    // Emulations of the kernel write zeros for what they don't count.
    if (pages.resident && pages.shared.value_or(0) != 0 && *pages.shared <= *pages.resident) {
      event->rss_anon_bytes = (*pages.resident - *pages.shared) * page_bytes();
      event->rss_shared_bytes = *pages.shared * page_bytes();
    }
  }
  threads_now_ = has_thread_count_ ? count_threads() : std::nullopt;
  set(&event->threads, threads_now_);
}

void Resources::record_process(std::uint64_t now_ns) {
  if (!process_pace_.is_due(now_ns)) return;
  process_pace_.note(now_ns, 0);
  ProcessDetailEvent event;
  const std::optional<Pages> pages = seams_.other_pages(now_ns);
  if (status_.is_due(now_ns)) {
    read_status(now_ns, &event);
  } else {
    read_cheaply(now_ns, pages, &event);
  }
  set(&event.descriptors, count_descriptors());
  const std::string_view io = io_.read_if_due(now_ns, seams_.cost_clock_ns);
  set(&event.read_bytes, find_number(io, "read_bytes:"));
  set(&event.written_bytes, find_number(io, "write_bytes:"));
  set(&event.read_calls, find_number(io, "syscr:"));
  set(&event.write_calls, find_number(io, "syscw:"));
  record_at(event, now_ns);
}

// What counts hits of a limit stands still where there is none, and is read with the limits.
void Resources::read_limits(std::uint64_t now_ns) {
  if (now_ns < next_limits_ns_) return;
  next_limits_ns_ = now_ns + kLimitsNs;
  limits_ = read_cgroup_limits(cgroup_);
  const bool is_usage_in_it = cgroup_.cpu_usage == cgroup_.cpu_stat;
  cpu_stat_.set_period(limits_.cpus || is_usage_in_it ? kSecond : kLimitsNs);
  // Version 2 counts kills for want of the machine's memory, too.
  const std::uint64_t unlimited_ns = cgroup_.memory_version == 2 ? PacedFile::kSeldomNs : kLimitsNs;
  memory_events_.set_period(limits_.memory_bytes ? kSecond : unlimited_ns);
}

void Resources::record_cgroup(std::uint64_t now_ns) {
  if (cgroup_.cpu_version == 0 && cgroup_.memory_version == 0) return;
  read_limits(now_ns);
  constexpr std::uint64_t kNsAUs = 1'000;
  CgroupUsageEvent event;
  const std::string_view stat = cpu_stat_.read_if_due(now_ns, seams_.cost_clock_ns);
  set(&event.throttlings, find_number(stat, "nr_throttled"));
  set(&event.throttled_ns, find_number(stat, "throttled_time"));
  set(&event.throttled_ns, find_number(stat, "throttled_usec"), kNsAUs);
  // Version 2 has both in one file, unless the limit is a group's above.
  const std::string_view usage = cgroup_.cpu_usage == cgroup_.cpu_stat
                                     ? stat
                                     : cpu_usage_.read_if_due(now_ns, seams_.cost_clock_ns);
  if (cgroup_.cpu_version == 1) {
    set(&event.cpu_usage_ns, parse_number(usage));
  } else {
    set(&event.cpu_usage_ns, find_number(usage, "usage_usec"), kNsAUs);
  }
  if (limits_.cpus) event.cpu_limit = *limits_.cpus;
  set(&event.memory_bytes, parse_number(memory_usage_.read_if_due(now_ns, seams_.cost_clock_ns)));
  set(&event.memory_limit_bytes, limits_.memory_bytes);
  const std::string_view events = memory_events_.read_if_due(now_ns, seams_.cost_clock_ns);
  if (cgroup_.memory_version == 1) {
    set(&event.memory_limit_hits, parse_number(events));
  } else {
    set(&event.memory_limit_hits, find_number(events, "max"));
    set(&event.oom_kills, find_number(events, "oom_kill"));
  }
  const auto version = [](int number) { return static_cast<std::uint8_t>(number); };
  if (cgroup_.cpu_version != 0) event.cpu_version = version(cgroup_.cpu_version);
  if (cgroup_.memory_version != 0) event.memory_version = version(cgroup_.memory_version);
  record_at(event, now_ns);
}

// Threads that are new get their name; those that are gone are forgotten.
void Resources::list_threads() {
  std::vector<Thread> threads;
  for (const std::uint32_t tid : thread_ids(seams_.root)) {
    const auto known =
        std::lower_bound(threads_.begin(), threads_.end(), tid,
                         [](const Thread& thread, std::uint32_t id) { return thread.tid < id; });
    const bool is_known = known != threads_.end() && known->tid == tid && !known->is_gone;
    threads.push_back(is_known ? *known : Thread{tid, thread_name(seams_.root, tid)});
  }
  threads_ = std::move(threads);
}

void Resources::record_thread(Thread& thread, std::uint64_t now_ns) {
  const MaybeNumber cpu_ns = seams_.thread_cpu_ns(thread.tid);
  // CPU time that fell is that of another thread, which got the id: listed anew.
  if (!cpu_ns || *cpu_ns < thread.last_cpu_ns) {
    thread.is_gone = is_list_old_ = true;
    return;
  }
  thread.is_resting = *cpu_ns == thread.last_cpu_ns;
  if (thread.is_resting) return;
  thread.last_cpu_ns = *cpu_ns;
  ThreadCpuEvent event;
  event.tid = thread.tid;
  event.thread_name = thread.name;
  event.cpu_ns = *cpu_ns;
  record_at(event, now_ns);
}

// The next `most` of those that rest, or of the others.
void Resources::choose_threads(bool resting, std::size_t most, ChosenThreads* chosen) {
  std::size_t& next = next_thread_[resting ? 1 : 0];
  for (std::size_t left = threads_.size(); left > 0 && most > 0; --left) {
    next = (next + 1) % threads_.size();
    Thread& thread = threads_[next];
    if (thread.is_gone || thread.is_resting != resting) continue;
    --most;
    chosen->threads[chosen->count++] = &thread;
  }
}

void Resources::record_threads(std::uint64_t now_ns) {
  const bool is_changed = is_list_old_ || !threads_now_ || threads_now_ != threads_listed_;
  if (list_pace_.is_due(now_ns) && (is_changed || now_ns >= listed_at_ns_ + kListAnywayNs)) {
    const std::uint64_t before_ns = seams_.cost_clock_ns();
    list_threads();
    list_pace_.note(now_ns, seams_.cost_clock_ns() - before_ns);
    threads_listed_ = threads_now_;
    is_list_old_ = false;
    listed_at_ns_ = now_ns;
  }
  std::size_t resting = 0;
  for (const Thread& thread : threads_) resting += thread.is_resting ? 1 : 0;
  const std::size_t at_rest = std::clamp(resting / kRestShare, kLeastAtRest, kMostAtRest);
  ChosenThreads chosen;  // all, before a reading makes one of the other kind
  choose_threads(true, at_rest, &chosen);
  choose_threads(false, kThreadsASample - at_rest, &chosen);
  for (std::size_t i = 0; i < chosen.count; ++i) record_thread(*chosen.threads[i], now_ns);
}

void Resources::sample(std::uint64_t now_ns) {
  record_process(now_ns);
  record_cgroup(now_ns);
  record_threads(now_ns);
}

}  // namespace internal

Status add_resources(std::chrono::nanoseconds period) noexcept {
  try {
    if (const std::string why = descriptor_shortage(); !why.empty()) {
      return Status::failure("resources: " + why);
    }
    // The child of a fork starts anew: its parent may have been in the middle of a sample.
    struct State {
      pid_t owner = 0;
      std::unique_ptr<internal::Resources> resources;
    };
    auto state = std::make_shared<State>();
    return internal::add_paced_source(
        "resources", period, internal::SourcePace::kWhileBusy, [state] {
          const pid_t self = ::getpid();
          if (state->owner != self) {
            (void)state->resources.release();
            state->resources = std::make_unique<internal::Resources>(internal::resource_seams());
            state->owner = self;
          }
          state->resources->sample(runtime::now_ns());
        });
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
