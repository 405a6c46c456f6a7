// A tree of files that stands for a machine's /proc and /sys. Strongest property: what a test
// doesn't write isn't there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "recorder/test_support.h"

namespace dial9::internal::testing {

class FileTree {
 public:
  const std::string& root() const { return dir_.path(); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path at = dir_.path() + path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }

  // A machine with version 2 only; our group is /app/web.
  static void make_v2(const FileTree& tree) {
    tree.write("/proc/self/cgroup", "0::/app/web\n");
    tree.write("/proc/self/mountinfo",
               "22 1 0:20 / /sys rw - sysfs sysfs rw\n"
               "30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    const std::string group = "/sys/fs/cgroup/app/web";
    tree.write(group + "/cpu.stat", "usage_usec 500\nnr_throttled 3\nthrottled_usec 70\n");
    tree.write(group + "/memory.current", "1000\n");
    tree.write(group + "/memory.events", "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n");
    tree.write(group + "/cgroup.events", "populated 1\n");
    for (const char* of : {"cpu", "memory", "io"}) {
      tree.write(group + "/" + of + ".pressure",
                 "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\n"
                 "full avg10=0.00 avg60=0.00 avg300=0.00 total=10\n");
    }
  }
  // A machine whose controllers are of version 1, with version 2 beside them for the rest.
  static void make_hybrid(const FileTree& tree) {
    tree.write("/proc/self/cgroup",
               "5:memory:/app/web\n4:cpu,cpuacct:/app/web\n1:name=systemd:/app\n0::/app\n");
    tree.write("/proc/self/mountinfo",
               "30 22 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
               "31 22 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
               "32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct/app/web";
    tree.write(cpu + "/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 70000\n");
    tree.write(cpu + "/cpu.cfs_quota_us", "-1\n");
    tree.write(cpu + "/cpu.cfs_period_us", "100000\n");
    tree.write(cpu + "/cpuacct.usage", "123456\n");
    const std::string memory = "/sys/fs/cgroup/memory/app/web";
    tree.write(memory + "/memory.usage_in_bytes", "2000\n");
    tree.write(memory + "/memory.limit_in_bytes", "9223372036854771712\n");
    tree.write(memory + "/memory.failcnt", "4\n");
    for (const char* of : {"cpu", "memory", "io"}) {
      tree.write(std::string("/proc/pressure/") + of, "some avg10=0.00 total=100\n");
    }
  }

 private:
  TempDir dir_;
};

}  // namespace dial9::internal::testing
