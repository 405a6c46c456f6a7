// What CPU samples cost: a signal with a handler that does nothing, the same with the sampler's
// handler on a stack of 50 frames, and what the collector does with a sample. Sent as the kernel's
// timer would send it, but by a system call, which is the dearer way. `percent_at_99hz` is the CPU
// time of one as a part of the period that it stands for: what sampling takes of the sampled time.
// Run:
//   cpu_samples_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "dial9/cpu_samples.h"
#include "recorder/cpu_sample_stream.h"
#include "sources/cpu_samples.h"
#include "sources/thread_timers.h"
#include "unwind/unwind.h"

namespace {

using namespace dial9;
using namespace dial9::internal;

constexpr int kFrames = 50;
constexpr double kPeriodNs = 1e9 / 99;

std::uint64_t process_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// CPU time an iteration, in percent of the period that a sample stands for at 99 Hz.
void set_share(benchmark::State& state, std::uint64_t cpu_ns) {
  const double each = static_cast<double>(cpu_ns) / static_cast<double>(state.iterations());
  state.counters["percent_at_99hz"] = 100 * each / kPeriodNs;
}

[[gnu::noinline]] void at_depth(int depth, const std::function<void()>& work) {
  volatile int here = depth;
  if (depth == 0) {
    work();
  } else {
    at_depth(depth - 1, work);
  }
  here = here + 1;
}

void send(int signal) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_TIMER;
  info.si_value.sival_ptr = reinterpret_cast<void*>(kTimerMark);
  ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::syscall(SYS_gettid), signal, &info);
}

void empty_signal(benchmark::State& state) {
  const int signal = SIGRTMIN + 3;
  ::signal(signal, [](int) {});
  std::thread([&] {
    at_depth(kFrames, [&] {
      for (auto _ : state) send(signal);
    });
  }).join();
}

// Signal, handler, stack and place in the ring; the reader takes it out again.
void sampled_signal(benchmark::State& state) {
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
  SampleRing* ring = SampleRing::make(256);
  const int signal = SIGRTMIN + 4;
  if (!status || ring == nullptr || !install_tick_handler(signal) ||
      unwind::prepare() != unwind::Prepared::kDone) {
    state.SkipWithError("can't sample here");
    return;
  }
  set_sample_ring(ring);
  std::uint64_t frames = 0;
  std::int64_t samples = 0;
  const std::uint64_t begin_ns = process_cpu_ns();
  std::thread([&] {
    at_depth(kFrames, [&] {
      for (auto _ : state) {
        send(signal);
        if (const Sample* sample = ring->front()) {
          frames = sample->frame_count;
          ++samples;
          ring->pop();
        }
      }
    });
  }).join();
  set_share(state, process_cpu_ns() - begin_ns);
  set_sample_ring(nullptr);
  if (samples != state.iterations()) state.SkipWithError("signals without samples");
  state.counters["frames"] = static_cast<double>(frames);
}

// The collector's part: encoding, each tenth stack a new one.
void encoded_sample(benchmark::State& state) {
  std::vector<std::uint64_t> frames(kFrames);
  CpuSampleEncoder encoder;
  CpuSampleRecord record;
  record.unwound_by = "tables";
  record.thread_name = "worker";
  record.frames = frames;
  std::uint64_t count = 0;
  const std::uint64_t begin_ns = process_cpu_ns();
  for (auto _ : state) {
    record.at_ns += 10'000'000;
    frames[0] = ++count / 10;
    encoder.add(record);
    if (count % 100 == 0) benchmark::DoNotOptimize(encoder.take());
  }
  set_share(state, process_cpu_ns() - begin_ns);
}

BENCHMARK(empty_signal)->UseRealTime();
BENCHMARK(sampled_signal)->UseRealTime();
BENCHMARK(encoded_sample)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
