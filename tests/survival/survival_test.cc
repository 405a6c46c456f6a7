// Kills a recording process in every way and at random moments, recovers what it left, and counts:
// no published event missing, none torn, none twice. DIAL9_SURVIVAL_KILLS (30) is how often; `make
// soak` sets 300. The seed of a failed kill is in its message.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "../integration/child_process.h"
#include "counters.h"
#include "format/decoder.h"
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

void wait_us(long us) {
  const timespec t{us / 1'000'000, us % 1'000'000 * 1000};
  ::nanosleep(&t, nullptr);
}

// What the segments of a run hold.
class Contents : public format::Visitor {
 public:
  std::vector<std::uint64_t> numbers[kThreads];
  std::uint64_t lost = 0;

  bool on_event(const format::Event& event) override {
    if (event.schema.name == "Numbered") {
      EXPECT_LT(event.values[0].bits, kThreads);
      if (event.values[0].bits < kThreads) {
        numbers[event.values[0].bits].push_back(event.values[1].bits);
      }
    } else if (event.schema.name == "RecorderLossEvent") {
      lost += event.values[1].bits;
    }
    return true;
  }

  void read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    format::Decoder decoder(*this);
    auto outcome =
        decoder.feed({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    if (outcome) outcome = decoder.finish();
    EXPECT_TRUE(outcome.has_value()) << path << ": " << outcome.error().message;
  }
};

// One process's life and death, in a directory of its own.
class Life {
 public:
  Life() {
    std::string name = (fs::temp_directory_path() / "dial9-survival-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    fs::create_directory(root());
    const int fd = ::open(counters_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::ftruncate(fd, sizeof(Counters)), 0);
    counters_ = static_cast<Counters*>(
        ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
  }
  ~Life() {
    ::munmap(counters_, sizeof(Counters));
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  std::string root() const { return path_ + "/runs"; }
  std::string log() const { return path_ + "/stderr"; }
  std::string counters_path() const { return path_ + "/counters"; }

  void start(const std::string& end, long delay_us, std::uint64_t seed) {
    child_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{DIAL9_SURVIVAL_CHILD, root(), counters_path(), end,
                                 std::to_string(delay_us), std::to_string(seed)},
        log());
  }
  ChildProcess& child() { return *child_; }
  // True once its threads record.
  bool await_recording() {
    for (int i = 0; i < 20'000; ++i) {
      if (counters_->is_recording.load(std::memory_order_acquire) != 0) return true;
      wait_us(500);
    }
    return false;
  }

  std::vector<std::string> runs() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(root())) out.push_back(entry.path().string());
    return out;
  }

  // Every published event is in the run's segments once, or was counted as lost. A thread may have
  // died inside its last call: that event is there, or lost, or nowhere.
  void check(const std::string& run) const {
    Contents contents;
    for (const auto& entry : fs::directory_iterator(run)) {
      const std::string name = entry.path().filename().string();
      if (name == ".lock") continue;
      EXPECT_TRUE(name.ends_with(".bin")) << name << " is left";
      contents.read(entry.path().string());
    }
    std::uint64_t done = 0;
    std::uint64_t found = 0;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      auto& numbers = contents.numbers[t];
      const std::uint64_t calls = counters_->done[t].value.load();
      std::sort(numbers.begin(), numbers.end());
      EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end())
          << "thread " << t << " has an event twice";
      if (!numbers.empty()) {
        EXPECT_LE(numbers.back(), calls) << "an event that never was";
      }
      done += calls;
      found += numbers.size();
    }
    EXPECT_GE(found + contents.lost, done) << "published events are missing";
    EXPECT_LE(found + contents.lost, done + kThreads);
    EXPECT_GT(done, 0U);
  }

 private:
  std::string path_;
  Counters* counters_ = nullptr;
  std::unique_ptr<ChildProcess> child_;
};

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
  EXPECT_EQ(life.runs().size(), 2U);
}

}  // namespace
}  // namespace dial9::testing
