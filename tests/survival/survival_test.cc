// Kills a recording process in every way and at random moments, recovers what it left, and counts:
// no published event missing, none torn, none twice. DIAL9_SURVIVAL_KILLS (30) is how often; `make
// soak` sets 300. The seed of a failed kill is in its message.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "life.h"
#include "recorder/recovery.h"

namespace dial9::testing {
namespace {

namespace fs = std::filesystem;
using internal::recover_run;
using internal::RunReport;
using internal::RunState;

constexpr int kDefaultKills = 30;

int kills() {
  const char* text = std::getenv("DIAL9_SURVIVAL_KILLS");
  return text == nullptr ? kDefaultKills : std::max(1, std::atoi(text));
}
// Of the ways beside SIGKILL.
int other_kills() { return kills() > kDefaultKills ? kills() : 5; }

// Recoveries that are killed too, sometimes; then one that isn't.
RunReport recover_under_fire(const std::string& run, std::mt19937_64& random) {
  for (std::uint64_t attempt = random() % 3; attempt > 0; --attempt) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      (void)recover_run(run, {});
      ::_exit(0);
    }
    wait_us(static_cast<long>(random() % 4000));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return recover_run(run, {});
}

// `kill_it` ends the child, if it doesn't end by itself.
void survive(const std::string& end, int count, std::uint64_t first_seed,
             const std::function<void(Life&)>& kill_it, int signal, int code = 0) {
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Life life;
    const long delay_us = static_cast<long>(1000 + random() % 120'000);
    life.start(end, delay_us, random());
    ASSERT_TRUE(life.await_recording());
    if (kill_it) {
      wait_us(delay_us);
      kill_it(life);
    }
    const ExitStatus status = life.child().wait();
    ASSERT_EQ(status.signal, signal) << status.text();
    ASSERT_TRUE(signal != 0 || status.code == code) << status.text();
    const auto runs = life.runs();
    ASSERT_EQ(runs.size(), 1U);
    const RunReport report = recover_under_fire(runs[0], random);
    EXPECT_TRUE(report.problems.empty()) << describe(report);
    EXPECT_NE(report.state, RunState::kNotFinished) << describe(report);
    life.check(runs[0]);
    EXPECT_EQ(recover_run(runs[0], {}).state, RunState::kNothing) << "the second time";
  }
}

TEST(Survival, OfEveryPublishedEventUnderSigkill) {
  survive("wait", kills(), 1, [](Life& life) { life.child().send_signal(SIGKILL); }, SIGKILL);
}

TEST(Survival, OfEveryPublishedEventUnderSigsegv) {
  survive("segv", other_kills(), 10'000, {}, SIGSEGV);
}

TEST(Survival, OfEveryPublishedEventUnderAbort) {
  survive("abort", other_kills(), 20'000, {}, SIGABRT);
}

TEST(Survival, OfEveryPublishedEventUnderExitWithoutDestructors) {
  survive("exit", other_kills(), 30'000, {}, 0, 7);
}

TEST(Survival, OfEveryPublishedEventOfAProcessThatWasStopped) {
  const auto stop_and_kill = [](Life& life) {
    life.child().send_signal(SIGSTOP);
    const std::string path = "/proc/" + std::to_string(life.child().pid()) + "/stat";
    for (std::string state; state != "T";) {
      std::ifstream in(path);
      std::string pid;
      std::string name;
      ASSERT_TRUE(in >> pid >> name >> state);
    }
    // While it is stopped its lock is held: nobody may touch what it has.
    EXPECT_EQ(recover_run(life.runs()[0], {}).state, RunState::kAlive);
    life.child().send_signal(SIGKILL);
  };
  survive("wait", other_kills(), 40'000, stop_and_kill, SIGKILL);
}

// A memory limit for one process, by a control group of its own.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::uint64_t bytes) {
    const std::string name = "/dial9-survival-" + std::to_string(::getpid());
    if (fs::exists("/sys/fs/cgroup/cgroup.controllers")) {
      make("/sys/fs/cgroup" + name, "memory.max", bytes);
    } else if (fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes")) {
      make("/sys/fs/cgroup/memory" + name, "memory.limit_in_bytes", bytes);
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  bool is_made() const { return !path_.empty(); }
  bool take_in(pid_t pid) const { return put("cgroup.procs", static_cast<std::uint64_t>(pid)); }

 private:
  bool make(const std::string& path, const char* limit, std::uint64_t bytes) {
    if (::mkdir(path.c_str(), 0755) != 0) return false;
    path_ = path;
    (void)put("memory.swap.max", 0);
    if (put(limit, bytes)) {
      (void)put("memory.memsw.limit_in_bytes", bytes);
      return true;
    }
    ::rmdir(path.c_str());
    path_.clear();
    return false;
  }
  bool put(const std::string& file, std::uint64_t value) const {
    const int fd = ::open((path_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const std::string text = std::to_string(value);
    const bool is_done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
    return is_done;
  }
  std::string path_;
};

TEST(Survival, OfEveryPublishedEventUnderTheOomKiller) {
  const MemoryGroup group(std::uint64_t{64} << 20);
  if (!group.is_made()) GTEST_SKIP() << "this machine gives no control group for memory";
  for (int i = 0; i < other_kills() && !HasFailure(); ++i) {
    const std::uint64_t seed = 50'000 + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Life life;
    life.start("oom", static_cast<long>(1000 + random() % 50'000), random());
    ASSERT_TRUE(group.take_in(life.child().pid()));
    const ExitStatus status = life.child().wait();
    ASSERT_EQ(status.signal, SIGKILL) << status.text();
    const auto runs = life.runs();
    ASSERT_EQ(runs.size(), 1U);
    const RunReport report = recover_under_fire(runs[0], random);
    EXPECT_TRUE(report.problems.empty()) << describe(report);
    life.check(runs[0]);
  }
}

TEST(Survival, IsSeenToByTheNextProcessInTheDirectory) {
  Life life;
  life.start("wait", 0, 1);
  ASSERT_TRUE(life.await_recording());
  wait_us(50'000);
  life.child().send_signal(SIGKILL);
  ASSERT_EQ(life.child().wait().signal, SIGKILL);
  const std::string dead = life.runs()[0];

  Life next;
  ChildProcess child({DIAL9_SURVIVAL_CHILD, life.root(), next.counters_path(), "stop", "1000", "1"},
                     next.log());
  const ExitStatus status = child.wait();
  EXPECT_TRUE(status.ok()) << status.text();
  life.check(dead);
  std::ifstream in(next.log());
  const std::string said{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(said.find(dead + ": recovered"), std::string::npos) << said;
  EXPECT_EQ(recover_run(dead, {}).state, RunState::kNothing);
  const auto runs = life.runs();
  ASSERT_EQ(runs.size(), 2U);
  // Its own run, too: emitted is written or lost.
  next.check(runs[0] == dead ? runs[1] : runs[0]);
}

}  // namespace
}  // namespace dial9::testing
