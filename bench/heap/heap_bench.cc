// What heap samples cost: a pair of malloc and free of the C library's own, the same through
// dial9's while nothing is sampled and while it samples with the live set, and what a sample takes
// more than its allocation, on a stack of 50 frames. All in one run and one process.
// Run:
//   heap_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>

#include "dial9/heap_samples.h"
#include "heap/hooks.h"

extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
}

namespace {

using namespace dial9;

constexpr int kFrames = 50;
constexpr int kPairs = 1'000;
constexpr int kSamples = 200;

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// A recorder in memory and heap samples at a rate; 0: neither.
class Sampling {
 public:
  explicit Sampling(std::uint64_t rate_bytes) {
    if (rate_bytes == 0) return;
    recorder_ = Recorder::start(RecorderOptions::memory(std::uint64_t{64} << 20)).first;
    is_good_ = add_heap_samples({.sample_rate_bytes = rate_bytes, .tracks_live = true}).ok();
  }
  ~Sampling() { remove_heap_samples(); }
  bool is_good() const { return is_good_; }

 private:
  Recorder recorder_;
  bool is_good_ = true;
};

// ns an operation of the quickest batch in state.counters["ns"]: batches are short, and most of
// what makes one slower is somebody else's. A batch in which samples found no room doesn't count.
template <class Work>
void measure(benchmark::State& state, int operations, Work work) {
  std::uint64_t least_ns = ~std::uint64_t{0};
  for (auto _ : state) {
    const std::uint64_t lost = heap::g_memory.lost_samples;
    const std::uint64_t begin = now_ns();
    for (int i = 0; i < operations; ++i) work();
    const std::uint64_t spent = now_ns() - begin;
    if (heap::g_memory.lost_samples == lost) least_ns = std::min(least_ns, spent);
    state.SetIterationTime(static_cast<double>(spent) * 1e-9);
  }
  if (least_ns == ~std::uint64_t{0}) return state.SkipWithError("every batch lost samples");
  state.counters["ns"] = static_cast<double>(least_ns) / operations;
}

void pair_of_libc(benchmark::State& state) {
  measure(state, kPairs, [] {
    void* block = __libc_malloc(64);
    benchmark::DoNotOptimize(block);
    __libc_free(block);
  });
}

void pair(benchmark::State& state, std::uint64_t rate_bytes) {
  const Sampling sampling(rate_bytes);
  if (!sampling.is_good()) return state.SkipWithError("heap samples were refused");
  measure(state, kPairs, [] {
    void* block = std::malloc(64);
    benchmark::DoNotOptimize(block);
    std::free(block);
  });
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

// Every allocation is a sample, and its free one of the live set: both.
void sample(benchmark::State& state) {
  const Sampling sampling(1);
  if (!sampling.is_good()) return state.SkipWithError("heap samples were refused");
  at_depth(kFrames, [&] {
    measure(state, kSamples, [] {
      void* block = std::malloc(64);
      benchmark::DoNotOptimize(block);
      std::free(block);
    });
  });
}

BENCHMARK(pair_of_libc)->UseManualTime();
BENCHMARK_CAPTURE(pair, off, 0)->UseManualTime();
BENCHMARK_CAPTURE(pair, sampled, 512 * 1024)->UseManualTime();
BENCHMARK(sample)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
