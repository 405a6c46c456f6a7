// What resources cost the recorder's own thread a second, in CPU time, beside a read of one kept
// file of /proc in the same run: ten samples of the process's usage (the 100 ms class) and one of
// all else (the 1 s class). Seconds are made up: what is read once in ten seconds, or in sixty, is
// in it with its share. And in some real seconds, where each look finds the caches cold. Run:
//   resources_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "bench_support.h"
#include "dial9/recorder.h"
#include "recorder/kept_files.h"
#include "sources/platform_stalls.h"
#include "sources/process_usage.h"
#include "sources/resources.h"

namespace {

using namespace dial9;
using namespace dial9::bench;
using namespace dial9::internal;

// A process with some threads, which wait, and a recorder that takes what is recorded.
class Host {
 public:
  explicit Host(int threads)
      : recorder_(Recorder::start(RecorderOptions::memory(std::uint64_t{32} << 20)).first),
        threads_(threads) {}
  ~Host() { close_kept_files(); }

 private:
  Recorder recorder_;
  WaitingThreads threads_;
};

void read_again(benchmark::State& state, const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  char text[256];
  if (::pread(fd, text, sizeof text, 0) <= 0) return state.SkipWithError("no such file here");
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(::pread(fd, text, sizeof text, 0));
  set_ns(state, begin_ns);
  ::close(fd);
}

// Both sources, as the collector has them.
class Sources {
 public:
  static constexpr std::uint64_t kPeriodNs = kSecond / 10;

  // The first look of a second is at everything.
  void sample(std::uint64_t now_ns, bool is_first) {
    if (is_first) resources_.sample(now_ns);
    usage_.sample(now_ns, kPeriodNs);
  }

 private:
  ResourceSeams seams() {
    ResourceSeams seams = resource_seams();
    // A busy machine's interruptions make no file dear, which would then be left out of the figure.
    seams.cost_clock_ns = [clock = seams.cost_clock_ns] {
      benchmark::DoNotOptimize(clock());
      return std::uint64_t{0};
    };
    seams.other_pages = [this](std::uint64_t now_ns) {
      return usage_.sample_for_another(now_ns, kPeriodNs);
    };
    return seams;
  }

  ProcessUsage usage_;
  Resources resources_{seams()};
};

void resources_a_second(benchmark::State& state) {
  const Host host(static_cast<int>(state.range(0)));
  Sources sources;
  std::uint64_t now_ns = kSecond;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i) sources.sample(now_ns += Sources::kPeriodNs, i == 0);
  }
  set_ns(state, begin_ns);
  state.counters["descriptors"] = static_cast<double>(kept_files_open());
}

// As it is in a service: between two looks the caches have had other things in them.
void resources_in_real_time(benchmark::State& state) {
  const Host host(static_cast<int>(state.range(0)));
  Sources sources;
  sources.sample(read_clock_ns(CLOCK_MONOTONIC), true);
  std::uint64_t cpu_ns = 0;
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(Sources::kPeriodNs));
      const std::uint64_t begin_ns = thread_cpu_ns();
      sources.sample(read_clock_ns(CLOCK_MONOTONIC), i == 0);
      cpu_ns += thread_cpu_ns() - begin_ns;
    }
  }
  state.counters["ns"] = static_cast<double>(cpu_ns) / static_cast<double>(state.iterations());
}

void usage_a_second(benchmark::State& state) {
  const Host host(static_cast<int>(state.range(0)));
  ProcessUsage usage;
  std::uint64_t now_ns = kSecond;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i) usage.sample(now_ns += kSecond / 10, kSecond / 10);
  }
  set_ns(state, begin_ns);
}

constexpr const char* kPressure = "/proc/pressure/cpu";

BENCHMARK_CAPTURE(read_again, kept_file, "/proc/self/statm");
BENCHMARK(resources_a_second)->Arg(32)->Arg(1'024);
BENCHMARK(usage_a_second)->Arg(32);
BENCHMARK(resources_in_real_time)->Arg(32)->Iterations(3)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  // A kernel may be built without.
  if (::access(kPressure, R_OK) == 0) {
    benchmark::RegisterBenchmark("read_again/pressure", read_again, kPressure);
  } else {
    std::fprintf(stderr, "read_again/pressure is left out: no %s here\n", kPressure);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
