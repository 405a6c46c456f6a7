// What a handler of Boost.Asio costs: bare (this file built without tracking), with the hooks and
// no recording, and recorded. Beside each, in the same process, the read of the clock that every
// event needs. Built twice: asio_bench_bare and asio_bench_tracked.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <boost/asio.hpp>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>

#include "dial9/internal/clock.h"

#if defined(DIAL9_ASIO_TRACKING)
#include "dial9/asio.h"
#include "dial9/recorder.h"
#endif

namespace dial9 {
namespace {

namespace net = boost::asio;

constexpr int kHandlers = 10'000;
constexpr int kRoundTrips = 1'000;

#if defined(DIAL9_ASIO_TRACKING)
constexpr bool kIsTracked = true;

// Recording into a memory ring while it lives.
class MaybeRecording {
 public:
  explicit MaybeRecording(bool is_on) {
    if (!is_on) return;
    auto [recorder, status] = Recorder::start(RecorderOptions::memory(std::uint64_t{64} << 20));
    is_started_ = status.ok();
    recorder_ = std::move(recorder);
  }
  bool is_started() const { return is_started_; }
  std::uint64_t dropped() const { return recorder_.status().events_dropped; }
  // Outside the measured time: so that the collector's speed isn't measured too.
  void drain(benchmark::State& state) {
    if (!is_started_) return;
    state.PauseTiming();
    recorder_.rotate();
    state.ResumeTiming();
  }

 private:
  Recorder recorder_;
  bool is_started_ = false;
};
#else
constexpr bool kIsTracked = false;

class MaybeRecording {
 public:
  explicit MaybeRecording(bool) {}
  bool is_started() const { return false; }
  std::uint64_t dropped() const { return 0; }
  void drain(benchmark::State&) {}
};
#endif

void post_next(net::io_context& io, int left) {
  if (left != 0) net::post(io, [&io, left] { post_next(io, left - 1); });
}

#if !defined(DIAL9_ASIO_TRACKING)
// The least that a recording of a handler does (wake, start, end): two clock reads, three stores.
struct alignas(16) Slot {
  std::uint64_t stamp, value;
};
thread_local Slot t_ring[4096];

void put(std::uint32_t& at, std::uint64_t stamp, std::uint64_t value) {
  t_ring[at++ % 4096] = {stamp, value};
  benchmark::ClobberMemory();
}

void post_next_recorded(net::io_context& io, std::uint32_t& at, int left) {
  const std::uint64_t start = internal::read_ticks();
  put(at, start, 1);
  if (left != 0) {
    put(at, start, 2);
    net::post(io, [&io, &at, left] { post_next_recorded(io, at, left - 1); });
  }
  put(at, internal::read_ticks(), 3);
}

// A process that records has another thread (the collector's). The C library's mutexes, of which a
// handler takes two, are cheaper in a process of one thread.
class OtherThread {
 private:
  std::jthread thread_{[](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
  }};
};

void handler_floor(benchmark::State& state) {
  const OtherThread waiting;
  net::io_context io(1);
  std::uint32_t at = 0;
  for (auto _ : state) {
    post_next_recorded(io, at, kHandlers);
    io.run();
    io.restart();
  }
  state.counters["ns_per_handler"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kHandlers * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(handler_floor)->Name("asio_handler/floor_beside_a_thread");  // bench/run: apart
#endif

// A handler that posts the next one: nothing but the scheduler's own work.
void handlers(benchmark::State& state, bool is_on) {
  MaybeRecording recording(is_on);
  if (is_on && !recording.is_started()) return state.SkipWithError("the recorder did not start");
  net::io_context io(1);
  for (auto _ : state) {
    post_next(io, kHandlers);
    io.run();
    io.restart();
    recording.drain(state);
  }
  state.counters["ns_per_handler"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kHandlers * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["dropped"] = static_cast<double>(recording.dropped());
}

#if !defined(DIAL9_ASIO_TRACKING)
void handlers_beside_a_thread(benchmark::State& state) {
  const OtherThread waiting;
  handlers(state, false);
}
#endif

net::awaitable<void> echo(net::local::stream_protocol::socket& socket, bool is_first) {
  std::array<char, 8> bytes{};
  for (int i = 0; i < kRoundTrips; ++i) {
    if (is_first) co_await net::async_write(socket, net::buffer(bytes), net::use_awaitable);
    co_await net::async_read(socket, net::buffer(bytes), net::use_awaitable);
    if (!is_first) co_await net::async_write(socket, net::buffer(bytes), net::use_awaitable);
  }
}

// Two coroutines that hand eight bytes back and forth over a pair of sockets.
void round_trips(benchmark::State& state, bool is_on) {
  MaybeRecording recording(is_on);
  if (is_on && !recording.is_started()) return state.SkipWithError("the recorder did not start");
  net::io_context io(1);
  net::local::stream_protocol::socket near(io);
  net::local::stream_protocol::socket far(io);
  net::local::connect_pair(near, far);
  for (auto _ : state) {
    net::co_spawn(io, echo(near, true), net::detached);
    net::co_spawn(io, echo(far, false), net::detached);
    io.run();
    io.restart();
    recording.drain(state);
  }
  state.counters["ns_per_round_trip"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kRoundTrips * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["dropped"] = static_cast<double>(recording.dropped());
}

void clock_read(benchmark::State& state) {
  for (auto _ : state) {
#if defined(__x86_64__)
    benchmark::DoNotOptimize(__builtin_ia32_rdtsc());
#else
    benchmark::DoNotOptimize(std::chrono::steady_clock::now());
#endif
  }
}

BENCHMARK(clock_read);
BENCHMARK_CAPTURE(handlers, off, false)
    ->Name(kIsTracked ? "asio_handler/off" : "asio_handler/bare");
BENCHMARK_CAPTURE(round_trips, off, false)
    ->Name(kIsTracked ? "asio_round_trip/off" : "asio_round_trip/bare");
#if !defined(DIAL9_ASIO_TRACKING)
BENCHMARK(handlers_beside_a_thread)->Name("asio_handler/bare_beside_a_thread");  // bench/run: apart
#else
BENCHMARK_CAPTURE(handlers, on, true)->Name("asio_handler/on");
BENCHMARK_CAPTURE(round_trips, on, true)->Name("asio_round_trip/on");
#endif

}  // namespace
}  // namespace dial9

BENCHMARK_MAIN();
