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

namespace dial9 {
namespace internal {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLimitsNs = 60 * kSecond;  // limits seldom change, and take several files
constexpr std::uint64_t kListNs = 10 * kSecond;

std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

// The kernel's number for "CPU time of that thread of this process": 0.5 us, and no descriptor.
MaybeNumber cpu_of_thread(std::uint32_t tid) {
  constexpr std::uint32_t kPerThreadScheduled = 6;
  const auto clock = static_cast<clockid_t>(~tid << 3 | kPerThreadScheduled);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

template <class Field>
void set(Field* field, MaybeNumber number, std::uint64_t times = 1) {
  if (number) *field = *number * times;
}

// Kernels since 6.2 say it as the directory's size; none else, since counting costs by descriptor.
MaybeNumber count_descriptors(const std::string& root) {
  struct stat status{};
  if (::stat((root + "/proc/self/fd").c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_size <= 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(status.st_size);
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
  return {"", [] { return read_clock(CLOCK_MONOTONIC); }, cpu_of_thread};
}

Resources::Resources(ResourceSeams seams)
    : seams_(std::move(seams)),
      cgroup_(find_cgroup_files(seams_.root)),
      status_(seams_.root + "/proc/self/status", kSecond),
      io_(seams_.root + "/proc/self/io", kSecond),
      cpu_stat_(cgroup_.cpu_stat, kSecond),
      cpu_usage_(cgroup_.cpu_usage, kSecond),
      memory_usage_(cgroup_.memory_usage, kSecond),
      memory_events_(cgroup_.memory_events, kSecond) {}

void Resources::record_process(std::uint64_t now_ns) {
  if (!status_.is_due(now_ns)) return;
  constexpr std::uint64_t kKib = 1'024;
  ProcessDetailEvent event;
  const std::string_view status = status_.read(now_ns, seams_.cost_clock_ns);
  set(&event.rss_anon_bytes, find_number(status, "RssAnon:"), kKib);
  set(&event.rss_file_bytes, find_number(status, "RssFile:"), kKib);
  set(&event.rss_shmem_bytes, find_number(status, "RssShmem:"), kKib);
  set(&event.swap_bytes, find_number(status, "VmSwap:"), kKib);
  set(&event.threads, find_number(status, "Threads:"));
  set(&event.descriptors, count_descriptors(seams_.root));
  const std::string_view io = io_.read_if_due(now_ns, seams_.cost_clock_ns);
  set(&event.read_bytes, find_number(io, "read_bytes:"));
  set(&event.written_bytes, find_number(io, "write_bytes:"));
  set(&event.read_calls, find_number(io, "syscr:"));
  set(&event.write_calls, find_number(io, "syscw:"));
  record_at(event, now_ns);
}

void Resources::record_cgroup(std::uint64_t now_ns) {
  if (cgroup_.cpu_version == 0 && cgroup_.memory_version == 0) return;
  if (now_ns >= next_limits_ns_) {
    limits_ = read_cgroup_limits(cgroup_);
    next_limits_ns_ = now_ns + kLimitsNs;
  }
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
    const bool is_known = known != threads_.end() && known->tid == tid;
    threads.push_back(is_known ? *known : Thread{tid, thread_name(seams_.root, tid), 0});
  }
  threads_ = std::move(threads);
}

void Resources::record_threads(std::uint64_t now_ns) {
  if (now_ns >= next_list_ns_) {
    list_threads();
    next_list_ns_ = now_ns + kListNs;
  }
  for (std::size_t i = 0; i < std::min(kThreadsASample, threads_.size()); ++i) {
    next_thread_ = (next_thread_ + 1) % threads_.size();
    Thread& thread = threads_[next_thread_];
    const MaybeNumber cpu_ns = seams_.thread_cpu_ns(thread.tid);
    // An id may have gone to another thread: CPU time that fell is another's, listed anew later.
    if (!cpu_ns || *cpu_ns <= thread.last_cpu_ns) continue;
    thread.last_cpu_ns = *cpu_ns;
    ThreadCpuEvent event;
    event.tid = thread.tid;
    event.thread_name = thread.name;
    event.cpu_ns = *cpu_ns;
    record_at(event, now_ns);
  }
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
