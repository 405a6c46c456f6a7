// What the process and its cgroup use, once a second: memory by kind, I/O, threads, descriptors,
// limits, and the CPU time of each thread. Strongest property: a number that the kernel doesn't
// give is absent, never zero; at most 4 kept descriptors, and each file is read so seldom that it
// costs at most 10 us a second. Spec: docs/spec/events_ours.md, "Resources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dial9/event.h"
#include "sources/cgroup.h"
#include "sources/paced_file.h"

namespace dial9::internal {

using maybe_gauge = optional<gauge_u64>;
using maybe_bytes = optional<bytes_gauge_u64>;
using maybe_counter = optional<counter_u64>;

DIAL9_EVENT(ProcessDetailEvent, (maybe_bytes, rss_anon_bytes), (maybe_bytes, rss_file_bytes),
            (maybe_bytes, rss_shmem_bytes), (maybe_bytes, swap_bytes), (maybe_gauge, threads),
            (maybe_gauge, descriptors), (maybe_counter, read_bytes), (maybe_counter, written_bytes),
            (maybe_counter, read_calls), (maybe_counter, write_calls));

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
};
ResourceSeams resource_seams();  // the machine's

// Threads that are listed, and that are read each second.
inline constexpr std::size_t kMostThreads = 1'024;
inline constexpr std::size_t kThreadsASample = 8;

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
  };
  void record_process(std::uint64_t now_ns);
  void record_cgroup(std::uint64_t now_ns);
  void record_threads(std::uint64_t now_ns);
  void list_threads();

  ResourceSeams seams_;
  CgroupFiles cgroup_;
  CgroupLimits limits_;
  std::uint64_t next_limits_ns_ = 0;
  PacedFile status_;
  PacedFile io_;
  PacedFile cpu_stat_;
  PacedFile cpu_usage_;
  PacedFile memory_usage_;
  PacedFile memory_events_;
  std::vector<Thread> threads_;  // by tid
  std::size_t next_thread_ = 0;
  std::uint64_t next_list_ns_ = 0;
};

}  // namespace dial9::internal
