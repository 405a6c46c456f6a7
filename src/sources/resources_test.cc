// Trees of files for each kind of machine: every number comes back, and what isn't there is absent.
// SPDX-License-Identifier: Apache-2.0
#include "sources/resources.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "dial9/recorder.h"
#include "dial9/source.h"
#include "sources/testing/file_tree.h"
#include "sources/testing/maybe_numbers.h"
#include "sources/testing/sockets.h"

namespace dial9::internal {
namespace {

using testing::FileTree;
using testing::maybe_numbers;
using testing::MaybeNumbers;

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

TEST_F(ResourcesTest, TheStatusComesEveryThirtySecondsAndInBetweenOnlyWhatStatmTells) {
  tree_.write("/proc/self/status",
              "RssAnon:\t12 kB\nRssFile:\t3 kB\nRssShmem:\t1 kB\nVmSwap:\t7 kB\n");
  tree_.write("/proc/self/statm", "100 30 10 1 0 1 0\n");
  Resources resources(seams());
  for (std::uint64_t second = 1; second <= 31; ++second) resources.sample(second * kSecond);
  const Trace trace = recorded();
  const std::string event = "ProcessDetailEvent";
  const auto anon = maybe_numbers(trace, event, "rss_anon_bytes");
  const auto shared = maybe_numbers(trace, event, "rss_shared_bytes");
  ASSERT_EQ(anon.size(), 31U);
  for (std::size_t i = 0; i < anon.size(); ++i) {
    const bool is_status = i % 30 == 0;
    EXPECT_EQ(anon[i], is_status ? 12 * 1'024 : 20 * page_bytes()) << i;
    EXPECT_EQ(shared[i], is_status ? 4 * 1'024 : 10 * page_bytes()) << i;
    for (const char* field : {"rss_file_bytes", "rss_shmem_bytes", "swap_bytes"}) {
      EXPECT_EQ(maybe_numbers(trace, event, field)[i].has_value(), is_status) << field << i;
    }
  }
}

TEST_F(ResourcesTest, PagesThatAnotherSourceReadAreNotReadAgain) {
  tree_.write("/proc/self/status", "RssAnon:\t12 kB\n");
  ResourceSeams with_other = seams();
  with_other.other_pages = [](std::uint64_t) { return Pages{30, 10}; };
  Resources resources(with_other);
  for (std::uint64_t second = 1; second <= 2; ++second) resources.sample(second * kSecond);
  EXPECT_EQ(recorded().numbers("ProcessDetailEvent", "rss_anon_bytes")[1], 20 * page_bytes())
      << "there is no statm here";
}

TEST_F(ResourcesTest, AKernelThatDoesNotTellAnonymousMemoryFromTheRestHasNone) {
  tree_.write("/proc/self/status", "VmRSS:\t12 kB\nThreads:\t1\n");
  tree_.write("/proc/self/statm", "100 30 10 1 0 1 0\n");
  Resources(seams()).sample(kSecond);
  Resources old(seams());
  for (std::uint64_t second = 1; second <= 2; ++second) old.sample(second * kSecond);
  tree_.write("/proc/self/status", "RssAnon:\t12 kB\nThreads:\t1\n");
  tree_.write("/proc/self/statm", "100 30 0 0 0 0 0\n");
  Resources emulated(seams());
  for (std::uint64_t second = 1; second <= 2; ++second) emulated.sample(second * kSecond);
  const auto anon = maybe_numbers(recorded(), "ProcessDetailEvent", "rss_anon_bytes");
  EXPECT_EQ(anon, (MaybeNumbers{{}, {}, {}, 12 * 1'024, {}}));
}

TEST_F(ResourcesTest, LinksThatAreNotAsManyAsThreadsAreNoCountOfThreads) {
  tree_.write("/proc/self/status", "Threads:\t33\n");
  for (const char* tid : {"101", "102"}) {
    tree_.write(std::string("/proc/self/task/") + tid + "/comm", "x\n");
  }
  Resources resources(seams());
  for (std::uint64_t second = 1; second <= 2; ++second) resources.sample(second * kSecond);
  const auto threads = maybe_numbers(recorded(), "ProcessDetailEvent", "threads");
  EXPECT_EQ(threads, (MaybeNumbers{33, {}}));
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

TEST_F(ResourcesTest, CountersOfALimitAreReadEachSecondWhereThereIsOneElseOnceAMinute) {
  for (const bool is_limited : {false, true}) {
    FileTree tree;
    FileTree::make_hybrid(tree);
    if (is_limited) {
      tree.write("/sys/fs/cgroup/cpu,cpuacct/app/web/cpu.cfs_quota_us", "50000\n");
      tree.write("/sys/fs/cgroup/memory/app/web/memory.limit_in_bytes", "5000\n");
    }
    ResourceSeams of_tree = seams();
    of_tree.root = tree.root();
    Resources resources(of_tree);
    for (std::uint64_t second = 1; second <= 61; ++second) resources.sample(second * kSecond);
  }
  const Trace trace = recorded();
  const std::string event = "CgroupUsageEvent";
  for (const char* field : {"throttlings", "throttled_ns", "memory_limit_hits"}) {
    const auto numbers = maybe_numbers(trace, event, field);
    ASSERT_EQ(numbers.size(), 2 * 61U);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i].has_value(), i >= 61 || i % 60 == 0) << field << i;
    }
  }
  for (const auto& bytes : maybe_numbers(trace, event, "memory_bytes")) EXPECT_TRUE(bytes);
  for (const auto& cpu_ns : maybe_numbers(trace, event, "cpu_usage_ns")) EXPECT_TRUE(cpu_ns);
}

TEST_F(ResourcesTest, KillsOfAGroupWithoutALimitComeEveryTenSeconds) {
  FileTree::make_v2(tree_);
  Resources resources(seams());
  for (std::uint64_t second = 1; second <= 21; ++second) resources.sample(second * kSecond);
  const auto kills = maybe_numbers(recorded(), "CgroupUsageEvent", "oom_kills");
  ASSERT_EQ(kills.size(), 21U);
  for (std::size_t i = 0; i < kills.size(); ++i) EXPECT_EQ(kills[i].has_value(), i % 10 == 0) << i;
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

TEST_F(ResourcesTest, ThreadsThatRunAreReadEachSecondAndThoseThatRestInTurnBeside) {
  for (std::uint32_t tid = 101; tid <= 140; ++tid) {
    tree_.write("/proc/self/task/" + std::to_string(tid) + "/comm", "worker\n");
    cpu_ns_[tid] = 1'000;
  }
  Resources resources(seams());
  std::uint64_t second = 1;
  for (; second <= 20; ++second) resources.sample(second * kSecond);  // each has been seen resting
  const std::size_t before = recorded().count("ThreadCpuEvent");
  EXPECT_EQ(before, 40U) << "once each, since none ran again";
  const std::uint64_t begin = second;
  for (; second < begin + 40; ++second) {
    cpu_ns_[110] += 5;
    cpu_ns_[120] += 5;
    resources.sample(second * kSecond);
  }
  const Trace trace = recorded();
  std::map<std::uint64_t, std::size_t> events;
  for (const std::uint64_t tid : trace.numbers("ThreadCpuEvent", "tid")) ++events[tid];
  EXPECT_EQ(trace.count("ThreadCpuEvent"), events[110] + events[120] + 38);
  EXPECT_GE(events[110], 1 + 20U) << "a resting thread's turn comes within 20 s";
  EXPECT_GE(events[120], 1 + 20U);
}

TEST_F(ResourcesTest, AThreadThatGotTheIdOfAnotherHasItsOwnName) {
  tree_.write("/proc/self/task/101/comm", "old\n");
  cpu_ns_[101] = 5'000;
  Resources resources(seams());
  resources.sample(kSecond);
  tree_.write("/proc/self/task/101/comm", "new\n");
  cpu_ns_[101] = 700;
  for (std::uint64_t second = 2; second <= 12; ++second) resources.sample(second * kSecond);
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts("ThreadCpuEvent", "thread_name"), (std::vector<std::string>{"old", "new"}));
  EXPECT_EQ(trace.numbers("ThreadCpuEvent", "cpu_ns"), (Numbers{5'000, 700}));
}

TEST_F(ResourcesTest, OnTheRealMachineThreadsAreCountedEachSecondAndANewOneIsFound) {
  Resources resources(resource_seams());
  resources.sample(kSecond);
  std::mutex gate;
  gate.lock();
  std::thread thread([&gate] { const std::lock_guard in(gate); });
  resources.sample(2 * kSecond);
  const auto count = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  resources.sample(12 * kSecond);
  gate.unlock();
  thread.join();
  const Trace trace = recorded();
  const auto threads = maybe_numbers(trace, "ProcessDetailEvent", "threads");
  ASSERT_EQ(threads.size(), 3U);
  EXPECT_EQ(threads[1], static_cast<std::uint64_t>(count)) << "by the directory's links";
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
