// What CPU samples cost: a signal with a handler that does nothing, the same with the sampler's
// handler on a stack of 50 frames, and what the collector does with a sample. Sent as the kernel's
// timer would send it, but by a system call, which is the dearer way. `percent_at_99hz` is the CPU
// time of one as a part of the period that it stands for: what sampling takes of the sampled time.
// perf_sample: the same work on a stack of 50 frames with an event at 10 kHz and without, by turns:
// the kernel's interrupt with its copy of the stack; and the collector's part, which unwinds.
// Run:
//   cpu_samples_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "bench_support.h"
#include "dial9/cpu_samples.h"
#include "recorder/cpu_sample_stream.h"
#include "sources/cpu_samples.h"
#include "sources/perf_backend.h"
#include "sources/thread_timers.h"
#include "unwind/unwind.h"

namespace {

using namespace dial9;
using namespace dial9::bench;
using namespace dial9::internal;

constexpr int kFrames = 50;
constexpr double kPeriodNs = 1e9 / 99;

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
  info.si_value.sival_ptr = reinterpret_cast<void*>(timer_mark());
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

// Some milliseconds, with no system call but the two that time it.
std::uint64_t same_work_ns() {
  const std::uint64_t begin_ns = thread_cpu_ns();
  volatile std::uint64_t work = 1;
  for (int i = 0; i < 3'000'000; ++i) work = work * 3 + 1;
  return thread_cpu_ns() - begin_ns;
}

void perf_sample(benchmark::State& state) {
  PerfProbe probe = probe_perf(100'000);
  if (!probe.refusal.empty() || unwind::prepare() != unwind::Prepared::kDone) {
    state.SkipWithError(probe.refusal.c_str());
    return;
  }
  std::uint64_t bare_ns = 0;
  std::uint64_t sampled_ns = 0;
  std::uint64_t collector_ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t frames = 0;
  std::thread([&] {
    at_depth(kFrames, [&] {
      for (auto _ : state) {
        bare_ns += same_work_ns();
        PerfBackend backend(probe.plan);
        backend.begin();
        backend.scan(0);
        sampled_ns += same_work_ns();
        backend.halt();
        const std::uint64_t begin_ns = thread_cpu_ns();
        backend.drain(0, [&](const CpuSampleRecord& record) {
          ++samples;
          frames = record.frames.size();
        });
        collector_ns += thread_cpu_ns() - begin_ns;
      }
    });
  }).join();
  if (samples == 0 || sampled_ns <= bare_ns) return state.SkipWithError("no difference seen");
  const auto each = [&](std::uint64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(samples);
  };
  state.counters["ns"] = each(sampled_ns - bare_ns);
  state.counters["percent_at_99hz"] = 100 * each(sampled_ns - bare_ns) / kPeriodNs;
  state.counters["collector_percent_at_99hz"] = 100 * each(collector_ns) / kPeriodNs;
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

int main(int argc, char** argv) {
  // Where it can't run it is left out, and its rows with it.
  const std::string refusal = probe_perf(100'000).refusal;
  if (refusal.empty()) {
    benchmark::RegisterBenchmark("perf_sample", perf_sample)->UseRealTime();
  } else {
    std::fprintf(stderr, "perf_sample is left out: %s\n", refusal.c_str());
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
