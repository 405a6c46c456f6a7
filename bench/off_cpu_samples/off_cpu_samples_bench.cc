// What a look at a thread costs, beside a read of the clock in the same run (`clock_reads`): at
// one that rests, in a process in which another runs, from the tenth second on for a minute, with
// all that the sampler reads and writes of it (`listed_ns`: with the listing of threads, too); of
// that its CPU clock, and its account, with the file kept open and without; and at one that is
// blocked in a call 20 frames deep (call, stack, context, and the proof that it didn't move). And
// what a switch costs the host where switches are followed, and with their stacks: `more_ns` than
// in the same run without, by the CPU time of both threads; `switch_ns` is a bare one, two pipes'
// calls included. Run:
//   off_cpu_samples_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench_support.h"
#include "sources/switch_watch.h"
#include "sources/thread_probe.h"
#include "sources/wall_sampler.h"
#include "unwind/unwind.h"

namespace {

using namespace dial9;
using namespace dial9::bench;
using namespace dial9::internal;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

// The least of many short runs.
double clock_read_ns() {
  constexpr int kReads = 1'000;
  std::uint64_t least = ~std::uint64_t{0};
  for (int run = 0; run < 50; ++run) {
    const std::uint64_t begin = now();
    for (int i = 0; i < kReads; ++i) benchmark::DoNotOptimize(now());
    least = std::min(least, now() - begin);
  }
  return static_cast<double>(least) / kReads;
}

[[gnu::noinline]] void block_at(int depth, int fd) {
  volatile char byte = 0;
  if (depth != 0) {
    block_at(depth - 1, fd);
  } else {
    char read = 0;
    if (::read(fd, &read, 1) == 1) byte = read;
  }
  byte = static_cast<char>(byte + 1);
}

// Threads that are blocked in read().
class Blocked {
 public:
  explicit Blocked(int count) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) return;
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
        tids_[static_cast<std::size_t>(started_.fetch_add(1))] = tid;
        block_at(20, pipe_[0]);
      });
    }
    while (started_ != count) std::this_thread::yield();
  }
  ~Blocked() {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (::write(pipe_[1], "x", 1) != 1) return;
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::uint32_t tid(std::size_t i) const { return tids_[i]; }

 private:
  int pipe_[2] = {-1, -1};
  std::atomic<int> started_{0};
  std::uint32_t tids_[128] = {};
  std::vector<std::thread> threads_;
};

// By this thread's CPU time: what others take of the CPU meanwhile isn't a look's.
void set_ratio(benchmark::State& state, std::uint64_t begin_ns) {
  const double each =
      static_cast<double>(thread_cpu_ns() - begin_ns) / static_cast<double>(state.iterations());
  state.counters["clock_reads"] = each / clock_read_ns();
}

// The probe of the system, in a time that the bench moves, and with one more thread, made up, which
// runs.
class TimedProbe final : public ThreadProbe {
 public:
  static constexpr std::uint32_t kRunning = 1;  // another process's, or no thread's
  explicit TimedProbe(ThreadProbe& probe, bool is_listing) : probe_(probe), lists_(is_listing) {
    probe_.list(&tids_);
    tids_.insert(tids_.begin(), kRunning);
  }
  std::uint64_t now = 1'000'000'000;
  std::uint64_t now_ns() override {
    benchmark::DoNotOptimize(probe_.now_ns());
    return now;
  }
  std::uint64_t cpu_ns() override { return probe_.cpu_ns(); }
  bool list(std::vector<std::uint32_t>* tids) override {
    if (lists_ && !probe_.list(tids)) return false;
    *tids = tids_;
    return true;
  }
  std::optional<std::uint64_t> count() override {
    const auto count = lists_ ? probe_.count() : tids_.size();
    return count ? std::optional(*count + 1) : std::nullopt;
  }
  std::optional<SchedReading> account(std::uint32_t tid) override {
    if (tid != kRunning) return probe_.account(tid);
    ++slices_;
    return SchedReading{slices_, 0, slices_};
  }
  std::optional<std::uint64_t> charged_ns(std::uint32_t tid) override {
    return probe_.charged_ns(tid);
  }
  Look look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) override {
    if (tid == kRunning) return Look::kRunning;
    const Look look = probe_.look(tid, reading, thread);
    thread->at_ns = now;
    return look;
  }
  std::string name(std::uint32_t tid) override { return probe_.name(tid); }
  void forget(std::uint32_t tid) override { probe_.forget(tid); }
  std::string trouble() const override { return probe_.trouble(); }

 private:
  ThreadProbe& probe_;
  std::vector<std::uint32_t> tids_;
  const bool lists_;
  std::uint64_t slices_ = 0;
};

// CPU time a look.
double resting_look_ns(bool is_listing) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto system = make_thread_probe();
  TimedProbe probe(*system, is_listing);
  OffCpuEncoder encoder;
  std::uint64_t encoded_at = 0;
  WallSampler sampler(probe, encoder, 50);
  const auto run_until = [&](std::uint64_t end_ns) {
    while (probe.now < end_ns) {
      probe.now = sampler.step(probe.now);
      if (probe.now / kSecond != encoded_at / kSecond) encoder.take();
      encoded_at = probe.now;
    }
  };
  const std::uint64_t start_ns = probe.now;
  run_until(start_ns + 10 * kSecond);
  const std::uint64_t looks = sampler.totals().looks;
  const std::uint64_t begin_ns = thread_cpu_ns();
  run_until(start_ns + 70 * kSecond);
  const double cpu_ns = static_cast<double>(thread_cpu_ns() - begin_ns);
  return cpu_ns / static_cast<double>(sampler.totals().looks - looks);
}

void resting_threads(benchmark::State& state) {
  unwind::prepare();
  const Blocked blocked(static_cast<int>(state.range(0)));
  std::vector<double> looks;
  std::vector<double> listed;
  for (auto _ : state) {
    looks.push_back(resting_look_ns(false));
    listed.push_back(resting_look_ns(true));
  }
  std::ranges::sort(looks);
  std::ranges::sort(listed);
  state.counters["ns"] = looks[looks.size() / 2];
  state.counters["listed_ns"] = listed[listed.size() / 2];
  state.counters["clock_reads"] = looks[looks.size() / 2] / clock_read_ns();
}

void clock_of_thread(benchmark::State& state) {
  const Blocked blocked(1);
  const auto probe = make_thread_probe();
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(probe->charged_ns(blocked.tid(0)));
  set_ratio(state, begin_ns);
}

void look_at_idle_thread(benchmark::State& state, bool is_kept) {
  const Blocked blocked(100);
  const auto probe = make_thread_probe();
  // The first threads that are read are the kept ones.
  for (std::size_t i = 0; i < 100; ++i) probe->account(blocked.tid(i));
  const std::uint32_t tid = blocked.tid(is_kept ? 0 : 99);
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(probe->account(tid));
  set_ratio(state, begin_ns);
}
void idle_thread_kept(benchmark::State& state) { look_at_idle_thread(state, true); }
void idle_thread_not_kept(benchmark::State& state) { look_at_idle_thread(state, false); }

void changed_thread(benchmark::State& state) {
  unwind::prepare();
  const Blocked blocked(1);
  const auto probe = make_thread_probe();
  BlockedThread thread;
  std::int64_t whole = 0;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    const auto reading = probe->account(blocked.tid(0));
    if (reading && probe->look(blocked.tid(0), *reading, &thread) == Look::kBlocked) {
      whole += thread.is_truncated ? 0 : 1;
    }
  }
  set_ratio(state, begin_ns);
  state.counters["frames"] = static_cast<double>(thread.frames.size());
  if (whole < state.iterations() * 9 / 10) state.SkipWithError("looks without whole stacks");
}

// Two threads on one CPU that wake each other in turn: each turn of one is a switch.
class PingPong {
 public:
  static constexpr int kTurns = 6;  // of each: what a ring of stacks holds

  PingPong() {
    if (::pipe2(there_, O_CLOEXEC) != 0 || ::pipe2(back_, O_CLOEXEC) != 0) std::abort();
    other_ = std::thread([this] {
      tid_ = static_cast<std::uint32_t>(::syscall(SYS_gettid));
      char byte = 0;
      while (::read(there_[0], &byte, 1) == 1 && byte != 'q') {
        if (::write(back_[1], "x", 1) != 1) return;
      }
    });
    while (tid_ == 0) std::this_thread::yield();
    ::pthread_getcpuclockid(other_.native_handle(), &others_clock_);
  }
  ~PingPong() {
    if (::write(there_[1], "q", 1) == 1) other_.join();
    for (const int fd : {there_[0], there_[1], back_[0], back_[1]}) ::close(fd);
  }
  std::uint32_t tid() const { return tid_; }
  // CPU time of both, for kTurns of each.
  std::uint64_t run() {
    const std::uint64_t begin = thread_cpu_ns() + read_clock_ns(others_clock_);
    char byte = 0;
    for (int i = 0; i < kTurns; ++i) {
      if (::write(there_[1], "x", 1) != 1 || ::read(back_[0], &byte, 1) != 1) std::abort();
    }
    return thread_cpu_ns() + read_clock_ns(others_clock_) - begin;
  }

 private:
  const OneCpu one_cpu_;
  int there_[2];
  int back_[2];
  std::thread other_;
  std::atomic<std::uint32_t> tid_{0};
  clockid_t others_clock_{};
};

// The medians of batches with and without, in turn.
void switches(benchmark::State& state, bool has_stacks) {
  const PerfProbe followed = probe_perf_switches();
  const PerfProbe stacks = probe_perf_switch_stacks();
  unwind::prepare();
  PingPong pair;
  const auto own = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  std::vector<std::uint64_t> bare;
  std::vector<std::uint64_t> watched;
  std::vector<ThreadSwitch> told;
  std::vector<SwitchStack> left;
  constexpr int kBatches = 50;
  for (auto _ : state) {
    for (int i = 0; i < kBatches; ++i) bare.push_back(pair.run());
    SwitchWatch watch(followed.plan, has_stacks ? &stacks.plan : nullptr);
    watch.follow({std::min(own, pair.tid()), std::max(own, pair.tid())}, 0, now());
    for (int i = 0; i < kBatches; ++i) {
      watched.push_back(pair.run());
      for (const std::uint32_t tid : {own, pair.tid()}) watch.take(tid, &told, &left);
    }
  }
  constexpr double kSwitches = 2.0 * PingPong::kTurns;
  const double bare_ns = median(bare) / kSwitches;
  const double more_ns = median(watched) / kSwitches - bare_ns;
  state.counters["switch_ns"] = bare_ns;
  state.counters["more_ns"] = more_ns;
  state.counters["clock_reads"] = more_ns / clock_read_ns();
  if (has_stacks && left.size() < told.size() / 4) state.SkipWithError("switches without stacks");
}
// Where switches can't be followed they are left out, and their rows with them.
void register_switches(const char* name, bool has_stacks, const PerfProbe& probe) {
  if (probe.refusal.empty()) {
    benchmark::RegisterBenchmark(name, switches, has_stacks);
  } else {
    std::fprintf(stderr, "%s is left out: %s\n", name, probe.refusal.c_str());
  }
}

BENCHMARK(resting_threads)->Arg(32)->Arg(100)->Iterations(3);
BENCHMARK(clock_of_thread);
BENCHMARK(idle_thread_kept);
BENCHMARK(idle_thread_not_kept);
BENCHMARK(changed_thread);

}  // namespace

int main(int argc, char** argv) {
  register_switches("switch_followed", false, probe_perf_switches());
  register_switches("switch_with_stack", true, probe_perf_switch_stacks());
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
