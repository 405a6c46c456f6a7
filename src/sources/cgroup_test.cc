// SPDX-License-Identifier: Apache-2.0
#include "sources/cgroup.h"

#include <gtest/gtest.h>

#include "sources/testing/file_tree.h"

namespace dial9::internal {
namespace {

using testing::FileTree;

TEST(Cgroup, Version2IsReadInItsOwnGroup) {
  FileTree tree;
  FileTree::make_v2(tree);
  const std::string group = tree.root() + "/sys/fs/cgroup/app/web";
  const CgroupFiles files = find_cgroup_files(tree.root());
  EXPECT_EQ(files.cpu_version, 2);
  EXPECT_EQ(files.cpu_stat, group + "/cpu.stat");
  EXPECT_EQ(files.memory_version, 2);
  EXPECT_EQ(files.memory_usage, group + "/memory.current");
  EXPECT_EQ(files.memory_events, group + "/memory.events");
  EXPECT_EQ(files.io_pressure, group + "/io.pressure");
  EXPECT_TRUE(files.is_pressure_own);
  EXPECT_FALSE(read_cgroup_limits(find_cgroup_files(tree.root())).cpus);
  EXPECT_FALSE(read_cgroup_limits(find_cgroup_files(tree.root())).memory_bytes);
}

TEST(Cgroup, TheTightestLimitOfTheGroupsAboveCountsAndThrottlingIsReadThere) {
  FileTree tree;
  FileTree::make_v2(tree);
  tree.write("/sys/fs/cgroup/app/web/cpu.max", "max 100000\n");
  tree.write("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  tree.write("/sys/fs/cgroup/app/cpu.stat", "nr_throttled 8\n");
  tree.write("/sys/fs/cgroup/app/web/memory.max", "5000\n");
  tree.write("/sys/fs/cgroup/app/memory.max", "4000\n");
  const CgroupLimits limits = read_cgroup_limits(find_cgroup_files(tree.root()));
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 4000U);
  EXPECT_EQ(find_cgroup_files(tree.root()).cpu_stat, tree.root() + "/sys/fs/cgroup/app/cpu.stat");
}

TEST(Cgroup, HybridTakesEachControllerWhereItIs) {
  FileTree tree;
  FileTree::make_hybrid(tree);
  const CgroupFiles files = find_cgroup_files(tree.root());
  const std::string cpu = tree.root() + "/sys/fs/cgroup/cpu,cpuacct/app/web";
  EXPECT_EQ(files.cpu_version, 1);
  EXPECT_EQ(files.cpu_stat, cpu + "/cpu.stat");
  EXPECT_EQ(files.cpu_usage, cpu + "/cpuacct.usage");
  EXPECT_EQ(files.memory_version, 1);
  EXPECT_EQ(files.memory_usage,
            tree.root() + "/sys/fs/cgroup/memory/app/web/memory.usage_in_bytes");
  EXPECT_EQ(files.cpu_pressure, tree.root() + "/proc/pressure/cpu") << "none of the group";
  EXPECT_FALSE(files.is_pressure_own);
  const CgroupLimits none = read_cgroup_limits(find_cgroup_files(tree.root()));
  EXPECT_FALSE(none.cpus) << "-1 is no limit";
  EXPECT_FALSE(none.memory_bytes) << "the largest number is no limit";
  tree.write("/sys/fs/cgroup/cpu,cpuacct/app/web/cpu.cfs_quota_us", "50000\n");
  tree.write("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "777\n");
  EXPECT_EQ(read_cgroup_limits(find_cgroup_files(tree.root())).cpus, 0.5);
  EXPECT_EQ(read_cgroup_limits(find_cgroup_files(tree.root())).memory_bytes, 777U);
}

TEST(Cgroup, InAContainerOurGroupIsTheMountsOwnRoot) {
  FileTree tree;  // the host's path in /proc/self/cgroup, a mount that begins at our group
  tree.write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  tree.write("/proc/self/mountinfo",
             "31 22 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  tree.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "100\n");
  EXPECT_EQ(find_cgroup_files(tree.root()).memory_usage,
            tree.root() + "/sys/fs/cgroup/memory/memory.usage_in_bytes");
  EXPECT_EQ(read_cgroup_limits(find_cgroup_files(tree.root())).memory_bytes, 100U);
}

TEST(Cgroup, WithANamespaceOurGroupIsTheRoot) {
  FileTree tree;
  tree.write("/proc/self/cgroup", "0::/\n");
  tree.write("/proc/self/mountinfo", "30 22 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
  tree.write("/sys/fs/cgroup/memory.current", "5\n");
  tree.write("/sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
  tree.write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(find_cgroup_files(tree.root()).memory_usage,
            tree.root() + "/sys/fs/cgroup/memory.current");
  EXPECT_EQ(read_cgroup_limits(find_cgroup_files(tree.root())).cpus, 2.0);
}

TEST(Cgroup, AMachineWithoutAnyHasNothing) {
  FileTree tree;
  const CgroupFiles files = find_cgroup_files(tree.root());
  EXPECT_EQ(files.cpu_version, 0);
  EXPECT_EQ(files.memory_version, 0);
  EXPECT_EQ(files.cpu_stat + files.memory_usage + files.cpu_pressure + files.io_pressure, "");
}

TEST(Cgroup, DamagedFilesAreNothing) {
  FileTree tree;
  for (const char* text : {"", "::::", "0::", "0:/x\n", "\n\n", "0::/../..\n", "9:cpu\n - - -\n"}) {
    tree.write("/proc/self/cgroup", text);
    tree.write("/proc/self/mountinfo", text);
    EXPECT_EQ(find_cgroup_files(tree.root()).cpu_version, 0) << text;
  }
}

}  // namespace
}  // namespace dial9::internal
