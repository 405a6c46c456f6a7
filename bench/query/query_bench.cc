// The server's answers for a screen of 2,560 pixels over a trace of 5 million events (another
// number by DIAL9_BENCH_EVENTS): all lanes, the whole range and a zoomed one; the spans; and where
// a span's time went. Beside them a memcpy of the polls' starts and ends, which a scan would have
// to read.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "analysis/loader.h"
#include "analysis/testing/synthetic_trace.h"
#include "server/lane_columns.h"
#include "server/run.h"
#include "server/span_columns.h"

namespace dial9 {
namespace {

constexpr std::uint32_t kBins = 1'024;  // of a tile, as the page asks
constexpr std::uint32_t kTiles = 4;     // that cover 2,560 pixels, at worst
constexpr std::uint32_t kExact = 400;

std::uint64_t wanted_events() {
  const char* text = std::getenv("DIAL9_BENCH_EVENTS");
  const std::uint64_t given = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return given == 0 ? 5'000'000 : given;
}

const server::Run& large_run() {
  static const std::unique_ptr<server::Run> run = [] {
    analysis::testing::SyntheticOptions options;
    constexpr double kEventsAPoll = 3.75;
    options.polls = static_cast<std::uint64_t>(static_cast<double>(wanted_events()) / kEventsAPoll);
    options.workers = 16;
    options.tasks = 1'000;
    analysis::Loader loader;
    loader.begin_input("synthetic");
    analysis::testing::write_synthetic(options, [&](std::span<const std::uint8_t> bytes) {
      return loader.feed(bytes).has_value();
    });
    (void)loader.end_input();
    return std::make_unique<server::Run>("synthetic", 1, loader.finish());
  }();
  return *run;
}

// A screen's tiles over [from, from + length) of the trace; the reply's bytes.
template <class Ask>
std::size_t ask_tiles(double from_ns, double length_ns, Ask ask) {
  std::size_t bytes = 0;
  for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
    server::WindowQuery window;
    window.bins = kBins;
    window.exact = kExact;
    window.bin_ns = length_ns / (kBins * kTiles);
    window.t0_ns = from_ns + window.bin_ns * kBins * tile;
    bytes += ask(window).size();
  }
  return bytes;
}

void lanes(benchmark::State& state, double share) {
  const server::Run& run = large_run();
  const auto whole_ns = static_cast<double>(run.trace().duration_ns());
  const server::LaneRange all{0, static_cast<std::uint32_t>(run.trace().lanes.size())};
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = ask_tiles(whole_ns * (1 - share) / 2, whole_ns * share,
                      [&](const auto& window) { return server::lane_columns(run, window, all); });
  }
  state.counters["reply_bytes"] = static_cast<double>(bytes);
  state.counters["events"] = static_cast<double>(run.trace().events);
  state.counters["memory_bytes"] = static_cast<double>(run.bytes());
}

void lanes_whole(benchmark::State& state) { lanes(state, 1); }
void lanes_tenth(benchmark::State& state) { lanes(state, 0.1); }
void lanes_thousandth(benchmark::State& state) { lanes(state, 1e-3); }

void spans_whole(benchmark::State& state) {
  const server::Run& run = large_run();
  const auto whole_ns = static_cast<double>(run.trace().duration_ns());
  const std::uint32_t rows = std::min<std::uint32_t>(run.trace().span_rows, 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ask_tiles(0, whole_ns, [&](const auto& window) {
      return server::span_columns(run, window, 0, rows);
    }));
  }
}

void minimap(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(server::minimap_columns(large_run(), kBins));
  }
}

void span_time(benchmark::State& state) {
  const server::Run& run = large_run();
  const std::size_t spans = run.trace().spans.size();
  std::size_t span = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(run.span_times().of(static_cast<std::uint32_t>(span)));
    span = spans == 0 ? 0 : (span + 7919) % spans;
  }
}

void memcpy_polls(benchmark::State& state) {
  const auto& polls = large_run().trace().polls;
  const std::vector<std::uint64_t> from(polls.size() * 2, 1);
  std::vector<std::uint64_t> to(from.size());
  for (auto _ : state) {
    std::copy(from.begin(), from.end(), to.begin());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
}

BENCHMARK(memcpy_polls)->Unit(benchmark::kMillisecond);
BENCHMARK(lanes_whole)->Unit(benchmark::kMillisecond);
BENCHMARK(lanes_tenth)->Unit(benchmark::kMillisecond);
BENCHMARK(lanes_thousandth)->Unit(benchmark::kMillisecond);
BENCHMARK(spans_whole)->Unit(benchmark::kMillisecond);
BENCHMARK(minimap)->Unit(benchmark::kMillisecond);
BENCHMARK(span_time)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace dial9

BENCHMARK_MAIN();
