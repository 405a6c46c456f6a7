// Where the kernel keeps what the process's cgroup may use and uses, for version 1, version 2 and
// both at once. Strongest property: a limit is the tightest of the group and those above it that
// are visible; what isn't mounted is absent. The root of /proc and /sys is given, so a tree of
// files stands for a machine in tests. Spec: docs/spec/events_ours.md, "Resources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sources/kernel_numbers.h"

namespace dial9::internal {

// Paths; empty: there is none.
struct CgroupFiles {
  int cpu_version = 0;  // 1 or 2; 0: no such controller
  int memory_version = 0;
  std::string cpu_stat;   // of the nearest group at or above ours that has a CPU limit, else ours
  std::string cpu_usage;  // version 1: cpuacct.usage; version 2: cpu.stat of our own group
  std::string memory_usage;
  std::string memory_events;  // version 2: memory.events; version 1: memory.failcnt
  std::string cpu_pressure;
  std::string memory_pressure;
  std::string io_pressure;
  bool is_pressure_own = false;  // the cgroup's; else the machine's
  // Directories of our group and of those above it that are visible.
  std::vector<std::string> cpu_groups;
  std::vector<std::string> memory_groups;
};

// `root` stands before /proc and before mount points; empty for the machine itself.
CgroupFiles find_cgroup_files(const std::string& root);

struct CgroupLimits {
  std::optional<double> cpus;  // CPU time a second
  MaybeNumber memory_bytes;
};
// As they are now.
CgroupLimits read_cgroup_limits(const CgroupFiles& files);

}  // namespace dial9::internal
