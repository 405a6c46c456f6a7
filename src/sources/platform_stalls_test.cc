// Injected clocks and files: each stall comes back with its range and amount.
// SPDX-License-Identifier: Apache-2.0
#include "sources/platform_stalls.h"

#include <gtest/gtest.h>

#include <chrono>

#include "dial9/recorder.h"
#include "dial9/source.h"
#include "recorder/kept_files.h"
#include "sources/testing/file_tree.h"
#include "sources/testing/sockets.h"

namespace dial9::internal {
namespace {

using testing::FileTree;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;
const std::string kEvent = "PlatformStallEvent";

class PlatformStallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
    ASSERT_TRUE(status.ok()) << status.message();
    recorder_ = std::move(recorder);
    clocks_ = {10 * kSecond, 100 * kSecond, 20 * kSecond, 0};
  }
  void TearDown() override { close_kept_files(); }

  PlatformSeams seams() {
    PlatformSeams seams;
    seams.root = tree_.root();
    seams.clocks = [this] { return clocks_; };
    seams.cost_clock_ns = [this] { return cost_ns_ += read_cost_ns_; };
    return seams;
  }
  void pass(std::uint64_t ns) {
    now_ns_ += ns;
    clocks_.monotonic_ns += ns;
    clocks_.realtime_ns += ns;
    clocks_.boottime_ns += ns;
  }
  Trace recorded() {
    EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(30)));
    return Trace::of(recorder_.sealed_segments());
  }

  FileTree tree_;
  Recorder recorder_;
  ClockTriple clocks_;
  std::uint64_t cost_ns_ = 0;
  std::uint64_t read_cost_ns_ = 0;
  std::uint64_t now_ns_ = 5 * kSecond;
};

TEST_F(PlatformStallsTest, AStepOfTheWallClockBackIsOneWithItsSign) {
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  pass(100 * kMs);
  clocks_.realtime_ns -= 3 * kSecond;
  stalls.sample(now_ns_);
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts(kEvent, "cause"), std::vector<std::string>{"clock_step"});
  EXPECT_EQ(trace.numbers(kEvent, "begin_ns"), std::vector<std::uint64_t>{5 * kSecond});
  EXPECT_EQ(trace.stamps(kEvent), std::vector<std::uint64_t>{5 * kSecond + 100 * kMs});
  EXPECT_EQ(static_cast<std::int64_t>(trace.numbers(kEvent, "step_ns")[0]),
            -static_cast<std::int64_t>(3 * kSecond));
}

TEST_F(PlatformStallsTest, AClockThatIsAdjustedSlowlyAndAnUncertainReadingAreNoSteps) {
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  pass(100 * kSecond);
  clocks_.realtime_ns += 50 * kMs;  // 500 ppm
  stalls.sample(now_ns_);
  pass(100 * kMs);
  clocks_.realtime_ns += 30 * kMs;
  clocks_.error_ns = 40 * kMs;  // preempted between the readings
  stalls.sample(now_ns_);
  EXPECT_EQ(recorded().count(kEvent), 0U);
}

TEST_F(PlatformStallsTest, ASuspendIsToldWithItsLengthAndIsNoStepOfTheWallClock) {
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  pass(250 * kMs);
  clocks_.realtime_ns += 3'600 * kSecond;
  clocks_.boottime_ns += 3'600 * kSecond;
  stalls.sample(now_ns_);
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts(kEvent, "cause"), std::vector<std::string>{"suspend"});
  EXPECT_EQ(trace.numbers(kEvent, "stalled_ns"), std::vector<std::uint64_t>{3'600 * kSecond});
}

TEST_F(PlatformStallsTest, ThrottlingOfVersion2IsTheRiseSinceTheLookBefore) {
  FileTree::make_v2(tree_);
  const std::string file = "/sys/fs/cgroup/app/web/cpu.stat";
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);  // what was throttled before is no stall of now
  pass(200 * kMs);
  tree_.write(file, "nr_throttled 5\nthrottled_usec 80070\n");
  stalls.sample(now_ns_);
  pass(200 * kMs);
  stalls.sample(now_ns_);  // nothing new
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts(kEvent, "cause"), std::vector<std::string>{"cpu_throttled"});
  EXPECT_EQ(trace.texts(kEvent, "scope"), std::vector<std::string>{"cgroup"});
  EXPECT_EQ(trace.numbers(kEvent, "stalled_ns"), std::vector<std::uint64_t>{80 * kMs});
  EXPECT_EQ(trace.numbers(kEvent, "count"), std::vector<std::uint64_t>{2});
  EXPECT_EQ(trace.numbers(kEvent, "begin_ns"), std::vector<std::uint64_t>{5 * kSecond});
}

TEST_F(PlatformStallsTest, ThrottlingOfVersion1IsInNanoseconds) {
  FileTree::make_hybrid(tree_);
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  pass(200 * kMs);
  tree_.write("/sys/fs/cgroup/cpu,cpuacct/app/web/cpu.stat",
              "nr_throttled 4\nthrottled_time 30070000\n");
  stalls.sample(now_ns_);
  EXPECT_EQ(recorded().numbers(kEvent, "stalled_ns"), std::vector<std::uint64_t>{30 * kMs});
}

TEST_F(PlatformStallsTest, StealIsTheMachinesAndInTicks) {
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 40 0 0\n");
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  pass(kSecond);
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 55 0 0\n");
  stalls.sample(now_ns_);
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts(kEvent, "cause"), std::vector<std::string>{"steal"});
  EXPECT_EQ(trace.texts(kEvent, "scope"), std::vector<std::string>{"machine"});
  EXPECT_EQ(trace.numbers(kEvent, "stalled_ns"),
            std::vector<std::uint64_t>{15 * kSecond /
                                       static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))});
}

TEST_F(PlatformStallsTest, PressureIsToldFromTwoPerCentOfTheTimeWithItsScope) {
  FileTree::make_v2(tree_);
  const std::string file = "/sys/fs/cgroup/app/web/memory.pressure";
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  pass(kSecond);
  tree_.write(file, "some avg10=0 total=19100\nfull avg10=0 total=10\n");
  stalls.sample(now_ns_);  // 1.9 %
  pass(kSecond);
  tree_.write(file, "some avg10=0 total=419100\nfull avg10=0 total=300010\n");
  stalls.sample(now_ns_);
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts(kEvent, "cause"), std::vector<std::string>{"pressure_memory"});
  EXPECT_EQ(trace.texts(kEvent, "scope"), std::vector<std::string>{"cgroup"});
  EXPECT_EQ(trace.numbers(kEvent, "stalled_ns"), std::vector<std::uint64_t>{400 * kMs});
  EXPECT_EQ(trace.numbers(kEvent, "full_stalled_ns"), std::vector<std::uint64_t>{300 * kMs});
}

TEST_F(PlatformStallsTest, ACounterThatFellBeginsAnew) {
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 40 0 0\n");
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  for (const char* text :
       {"cpu  1 1 1 1 1 1 1 5 0 0\n", "no such line\n", "cpu  1 1 1 1 1 1 1 90 0 0\n"}) {
    pass(kSecond);
    tree_.write("/proc/stat", text);
    stalls.sample(now_ns_);
  }
  EXPECT_EQ(recorded().count(kEvent), 0U);
}

TEST_F(PlatformStallsTest, AFileThatIsDearIsReadSeldom) {
  read_cost_ns_ = 100 * 1'000;
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 40 0 0\n");
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 90 0 0\n");
  pass(9 * kSecond);
  stalls.sample(now_ns_);
  EXPECT_EQ(recorded().count(kEvent), 0U) << "100 us are 10 us a second after 10 s";
  pass(kSecond);
  stalls.sample(now_ns_);
  EXPECT_EQ(recorded().count(kEvent), 1U);
}

TEST_F(PlatformStallsTest, ALateWakeUpIsRecordedAndAllFilesAreLookedAtNext) {
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 40 0 0\n");
  PlatformStalls stalls(seams());
  stalls.sample(now_ns_);
  tree_.write("/proc/stat", "cpu  1 1 1 1 1 1 1 90 0 0\n");
  pass(20 * kMs);
  stalls.note_late_wake({now_ns_ - 15 * kMs, now_ns_, 12 * kMs});
  stalls.sample(now_ns_);
  const Trace trace = recorded();
  EXPECT_EQ(trace.texts(kEvent, "cause"), (std::vector<std::string>{"late_wakeup", "steal"}));
  EXPECT_EQ(trace.numbers(kEvent, "stalled_ns")[0], 12 * kMs);
  EXPECT_EQ(trace.numbers(kEvent, "begin_ns")[0], now_ns_ - 15 * kMs);
  EXPECT_EQ(trace.stamps(kEvent)[0], now_ns_);
}

TEST_F(PlatformStallsTest, FilesOfTheMachineAreReadableWithoutAnyRights) {
  const int result = testing::run_as_nobody([] {
    const CgroupFiles files = find_cgroup_files("");
    char buffer[1 << 15];
    KeptFile stat("/proc/stat");
    return parse_steal_ticks(stat.read(buffer, sizeof buffer)).has_value() &&
           (files.cpu_pressure.empty() ||
            parse_pressure(KeptFile(files.cpu_pressure).read(buffer, sizeof buffer)).some_us);
  });
  if (result < 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EQ(result, 0);
}

TEST(PlatformStallsSource, ListensToHeartbeatsWhileItIsThere) {
  EXPECT_EQ(late_wake_sink(), nullptr);
  ASSERT_TRUE(add_platform_stalls().ok());
  EXPECT_NE(late_wake_sink(), nullptr);
  EXPECT_FALSE(add_platform_stalls().ok());
  EXPECT_NE(late_wake_sink(), nullptr) << "the first is still there";
  EXPECT_TRUE(remove_source("platform_stalls"));
  EXPECT_EQ(late_wake_sink(), nullptr);
}

}  // namespace
}  // namespace dial9::internal
