// What the process and its cgroup use, once a second: memory by kind, I/O, threads, descriptors,
// limits, and the CPU time of each thread. Strongest property: a number that the kernel doesn't
// give, or that isn't read in this second, is absent, never zero or an old one (limits may be 60 s
// old). At most 8 kept descriptors; about 20 us a second with the process's usage every 100 ms,
// where the caches are warm (bench/resources).
//
// Spec: docs/spec/events_ours.md, "Resources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dial9/event.h"
#include "sources/cgroup.h"
#include "sources/paced_file.h"
#include "sources/process_usage.h"

namespace dial9::internal {

using maybe_gauge = optional<gauge_u64>;
using maybe_bytes = optional<bytes_gauge_u64>;
using maybe_counter = optional<counter_u64>;
using maybe_bytes_counter = optional<annotated<std::uint64_t, Unit::kBytes, Kind::kCounter>>;

DIAL9_EVENT(ProcessDetailEvent, (maybe_bytes, rss_anon_bytes), (maybe_bytes, rss_file_bytes),
            (maybe_bytes, rss_shmem_bytes), (maybe_bytes, swap_bytes), (maybe_gauge, threads),
            (maybe_gauge, descriptors), (maybe_bytes_counter, read_bytes),
            (maybe_bytes_counter, written_bytes), (maybe_counter, read_calls),
            (maybe_counter, write_calls), (maybe_bytes, rss_shared_bytes));

DIAL9_EVENT(CgroupUsageEvent, (optional<ns_counter_u64>, cpu_usage_ns),
            (optional<double>, cpu_limit), (optional<ns_counter_u64>, throttled_ns),
            (maybe_counter, throttlings), (maybe_bytes, memory_bytes),
            (maybe_bytes, memory_limit_bytes), (maybe_counter, memory_limit_hits),
            (maybe_counter, oom_kills), (optional<std::uint8_t>, cpu_version),
            (optional<std::uint8_t>, memory_version));

DIAL9_EVENT(ThreadCpuEvent, (std::uint32_t, tid), (interned, thread_name),
            (ns_counter_u64, cpu_ns));

struct ResourceSeams {
  std::string root;                              // before /proc and mount points
  std::function<std::uint64_t()> cost_clock_ns;  // of what reading costs
  // CPU time of a thread of this process, as the kernel has it; none: it is gone.
  std::function<MaybeNumber(std::uint32_t tid)> thread_cpu_ns;
  // Pages that another source reads and records in this turn; none: there is no such source.
  std::function<std::optional<Pages>(std::uint64_t now_ns)> other_pages = sample_process_usage;
};
ResourceSeams resource_seams();  // the machine's

// Threads that are listed, and that are read each second.
inline constexpr std::size_t kMostThreads = 1'024;
inline constexpr std::size_t kThreadsASample = 8;
// Of those that rest, a 16th is read each second, within these bounds; the others are the rest's.
inline constexpr std::size_t kLeastAtRest = 2;
inline constexpr std::size_t kMostAtRest = 4;
inline constexpr std::size_t kRestShare = 16;

class Resources {
 public:
  explicit Resources(ResourceSeams seams);
  // Records what is due; once a second. One thread.
  void sample(std::uint64_t now_ns);

 private:
  struct Thread {
    std::uint32_t tid = 0;
    std::string name;
    std::uint64_t last_cpu_ns = 0;
    bool is_gone = false;
    bool is_resting = false;  // it hadn't run when it was last read
  };
  struct ChosenThreads {
    std::array<Thread*, kThreadsASample> threads;
    std::size_t count = 0;
  };
  void record_process(std::uint64_t now_ns);
  void read_status(std::uint64_t now_ns, ProcessDetailEvent* event);
  void read_cheaply(std::uint64_t now_ns, const std::optional<Pages>& read,
                    ProcessDetailEvent* event);
  MaybeNumber count_threads();
  MaybeNumber count_descriptors();
  void record_cgroup(std::uint64_t now_ns);
  void read_limits(std::uint64_t now_ns);
  void record_threads(std::uint64_t now_ns);
  void choose_threads(bool resting, std::size_t most, ChosenThreads* chosen);
  void record_thread(Thread& thread, std::uint64_t now_ns);
  void list_threads();

  ResourceSeams seams_;
  CgroupFiles cgroup_;
  CgroupLimits limits_;
  std::uint64_t next_limits_ns_ = 0;
  Pace process_pace_;
  PacedFile status_;
  PacedFile statm_;
  PacedFile io_;
  KeptFile descriptor_directory_;
  KeptFile thread_directory_;
  // Seen beside the status file, which says the same in words.
  bool has_memory_split_ = false;  // statm tells anonymous memory from the rest
  bool has_thread_count_ = false;  // the links of the threads' directory are as many as threads
  MaybeNumber threads_now_;
  PacedFile cpu_stat_;
  PacedFile cpu_usage_;
  PacedFile memory_usage_;
  PacedFile memory_events_;
  std::vector<Thread> threads_;      // by tid
  std::size_t next_thread_[2] = {};  // of those that ran, of those that rest
  Pace list_pace_;
  MaybeNumber threads_listed_;  // how many there were when they were listed
  bool is_list_old_ = true;     // a thread of it is gone
  std::uint64_t listed_at_ns_ = 0;
};

}  // namespace dial9::internal
