// Trees of files for each kind of machine: every number comes back, and what isn't there is absent.
// SPDX-License-Identifier: Apache-2.0
#include "sources/resources.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "dial9/recorder.h"
#include "dial9/source.h"
#include "sources/testing/file_tree.h"
#include "sources/testing/sockets.h"

namespace dial9::internal {
namespace {

using testing::FileTree;

constexpr std::uint64_t kSecond = 1'000'000'000;
using Numbers = std::vector<std::uint64_t>;

class ResourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
    ASSERT_TRUE(status.ok()) << status.message();
    recorder_ = std::move(recorder);
  }
  void TearDown() override { close_kept_files(); }

  ResourceSeams seams() {
    return {tree_.root(), [] { return std::uint64_t{0}; },
            [this](std::uint32_t tid) -> MaybeNumber {
              const auto found = cpu_ns_.find(tid);
              return found == cpu_ns_.end() ? MaybeNumber() : found->second;
            }};
  }
  Trace recorded() {
    EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(30)));
    return Trace::of(recorder_.sealed_segments());
  }

  FileTree tree_;
  Recorder recorder_;
  std::map<std::uint32_t, std::uint64_t> cpu_ns_;
};

TEST_F(ResourcesTest, TheProcesssMemoryComesByKindAndItsIoInBytes) {
  tree_.write("/proc/self/status",
              "Name:\tx\nRssAnon:\t   12 kB\nRssFile:\t 3 kB\nRssShmem:\t 1 kB\nVmSwap:\t 7 kB\n"
              "Threads:\t33\n");
  tree_.write("/proc/self/io",
              "rchar: 1\nwchar: 2\nsyscr: 30\nsyscw: 40\nread_bytes: 4096\nwrite_bytes: 8192\n");
  Resources(seams()).sample(kSecond);
  const Trace trace = recorded();
  const std::string event = "ProcessDetailEvent";
  EXPECT_EQ(trace.numbers(event, "rss_anon_bytes"), Numbers{12 * 1'024});
  EXPECT_EQ(trace.numbers(event, "rss_file_bytes"), Numbers{3 * 1'024});
  EXPECT_EQ(trace.numbers(event, "rss_shmem_bytes"), Numbers{1'024});
  EXPECT_EQ(trace.numbers(event, "swap_bytes"), Numbers{7 * 1'024});
  EXPECT_EQ(trace.numbers(event, "threads"), Numbers{33});
  EXPECT_EQ(trace.numbers(event, "read_bytes"), Numbers{4'096});
  EXPECT_EQ(trace.numbers(event, "written_bytes"), Numbers{8'192});
  EXPECT_EQ(trace.numbers(event, "read_calls"), Numbers{30});
  EXPECT_EQ(trace.numbers(event, "write_calls"), Numbers{40});
}

TEST_F(ResourcesTest, Version2TellsUsageLimitsAndHits) {
  FileTree::make_v2(tree_);
  tree_.write("/sys/fs/cgroup/app/web/cpu.max", "150000 100000\n");
  tree_.write("/sys/fs/cgroup/app/memory.max", "4000\n");
  Resources(seams()).sample(kSecond);
  const Trace trace = recorded();
  const std::string event = "CgroupUsageEvent";
  EXPECT_EQ(trace.numbers(event, "cpu_usage_ns"), Numbers{500'000});
  EXPECT_EQ(trace.numbers(event, "throttled_ns"), Numbers{70'000});
  EXPECT_EQ(trace.numbers(event, "throttlings"), Numbers{3});
  EXPECT_EQ(trace.numbers(event, "memory_bytes"), Numbers{1'000});
  EXPECT_EQ(trace.numbers(event, "memory_limit_bytes"), Numbers{4'000});
  EXPECT_EQ(trace.numbers(event, "memory_limit_hits"), Numbers{7});
  EXPECT_EQ(trace.numbers(event, "oom_kills"), Numbers{0});
  EXPECT_EQ(trace.numbers(event, "cpu_version"), Numbers{2});
}

TEST_F(ResourcesTest, AHybridTellsTheSameFromVersion1) {
  FileTree::make_hybrid(tree_);
  tree_.write("/sys/fs/cgroup/memory/app/web/memory.limit_in_bytes", "5000\n");
  Resources(seams()).sample(kSecond);
  const Trace trace = recorded();
  const std::string event = "CgroupUsageEvent";
  EXPECT_EQ(trace.numbers(event, "cpu_usage_ns"), Numbers{123'456});
  EXPECT_EQ(trace.numbers(event, "throttled_ns"), Numbers{70'000});
  EXPECT_EQ(trace.numbers(event, "memory_bytes"), Numbers{2'000});
  EXPECT_EQ(trace.numbers(event, "memory_limit_bytes"), Numbers{5'000});
  EXPECT_EQ(trace.numbers(event, "memory_limit_hits"), Numbers{4});
  EXPECT_EQ(trace.numbers(event, "memory_version"), Numbers{1});
}

TEST_F(ResourcesTest, AMachineWithoutCgroupsHasNoEventOfThem) {
  Resources(seams()).sample(kSecond);
  EXPECT_EQ(recorded().count("CgroupUsageEvent"), 0U);
}

TEST_F(ResourcesTest, EveryThreadIsReadInTurnAndThoseThatDidNotRunAreLeftOut) {
  for (std::uint32_t tid = 101; tid <= 120; ++tid) {
    tree_.write("/proc/self/task/" + std::to_string(tid) + "/comm",
                "worker " + std::to_string(tid) + "\n");
    cpu_ns_[tid] = tid == 110 ? 0 : tid * 1'000;
  }
  Resources resources(seams());
  for (std::uint64_t second = 1; second <= 9; ++second) resources.sample(second * kSecond);
  const Trace trace = recorded();
  const Numbers tids = trace.numbers("ThreadCpuEvent", "tid");
  EXPECT_EQ(tids.size(), 19U) << "once each, since none ran again";
  for (std::size_t i = 0; i < tids.size(); ++i) {
    EXPECT_EQ(trace.numbers("ThreadCpuEvent", "cpu_ns")[i], tids[i] * 1'000);
    EXPECT_EQ(trace.texts("ThreadCpuEvent", "thread_name")[i], "worker " + std::to_string(tids[i]));
  }
}

TEST_F(ResourcesTest, OnTheRealMachineTheNumbersAreThere) {
  Resources resources(resource_seams());
  resources.sample(kSecond);
  const Trace trace = recorded();
  const std::string event = "ProcessDetailEvent";
  ASSERT_EQ(trace.count(event), 1U);
  EXPECT_GT(trace.numbers(event, "rss_anon_bytes")[0], 100'000U);
  EXPECT_GE(trace.numbers(event, "threads")[0], 2U) << "this one and the collector";
  EXPECT_GE(trace.count("ThreadCpuEvent"), 1U);
}

TEST_F(ResourcesTest, AreReadableWithoutAnyRights) {
  const int result = testing::run_as_nobody([] {
    char text[1 << 14];
    KeptFile status("/proc/self/status");
    return find_number(status.read(text, sizeof text), "RssAnon:").has_value() &&
           resource_seams().thread_cpu_ns(static_cast<std::uint32_t>(::getpid())).has_value();
  });
  if (result < 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EQ(result, 0);
}

TEST(ResourcesSource, IsThereOnce) {
  ASSERT_TRUE(add_resources().ok());
  EXPECT_FALSE(add_resources().ok());
  EXPECT_TRUE(remove_source("resources"));
}

}  // namespace
}  // namespace dial9::internal
