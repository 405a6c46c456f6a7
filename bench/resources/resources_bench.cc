// What resources cost the recorder's own thread a second, in CPU time, beside a read of one kept
// file of /proc in the same run: ten samples of the process's usage (the 100 ms class) and one of
// all else (the 1 s class). Seconds are made up: what is read once in ten seconds, or in sixty, is
// in it with its share. Run:
//   resources_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "dial9/recorder.h"
#include "recorder/kept_files.h"
#include "sources/platform_stalls.h"
#include "sources/process_usage.h"
#include "sources/resources.h"

namespace {

using namespace dial9;
using namespace dial9::internal;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr int kThreads = 32;

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// A process with some threads, which wait, and a recorder that takes what is recorded.
class Host {
 public:
  Host() : recorder_(Recorder::start(RecorderOptions::memory(std::uint64_t{32} << 20)).first) {
    gate_.lock();
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this] { const std::lock_guard in(gate_); });
    }
  }
  ~Host() {
    gate_.unlock();
    for (std::thread& thread : threads_) thread.join();
    close_kept_files();
  }

 private:
  Recorder recorder_;
  std::mutex gate_;
  std::vector<std::thread> threads_;
};

void set_ns(benchmark::State& state, std::uint64_t begin_ns) {
  state.counters["ns"] =
      static_cast<double>(thread_cpu_ns() - begin_ns) / static_cast<double>(state.iterations());
}

void read_of_a_kept_file(benchmark::State& state) {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[128];
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(::pread(fd, text, sizeof text, 0));
  set_ns(state, begin_ns);
  ::close(fd);
}

void resources_a_second(benchmark::State& state) {
  const Host host;
  ProcessUsage usage;
  ResourceSeams seams = resource_seams();
  // A busy machine's interruptions make no file dear, which would then be left out of the figure.
  seams.cost_clock_ns = [clock = seams.cost_clock_ns] {
    benchmark::DoNotOptimize(clock());
    return std::uint64_t{0};
  };
  seams.other_pages = [&](std::uint64_t now_ns) { return usage.sample_for_another(now_ns); };
  Resources resources(seams);
  std::uint64_t now_ns = kSecond;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i) {
      now_ns += kSecond / 10;
      if (i == 0) resources.sample(now_ns);
      usage.sample(now_ns, kSecond / 10);
    }
  }
  set_ns(state, begin_ns);
  state.counters["descriptors"] = static_cast<double>(kept_files_open());
}

BENCHMARK(read_of_a_kept_file);
BENCHMARK(resources_a_second);

}  // namespace

BENCHMARK_MAIN();
