// What sources cost the recorder's own thread, in its CPU time, beside a system call that does
// nothing: accept queues a look, with 1, 16 and 128 listeners; platform stalls and heartbeats of a
// busy second; the connection of a slow wait; a look at the loaded modules; a function's name, its
// share of reading the symbol tables included. And a thread's start with an alternate signal stack
// for crashes, beside a bare one. Seconds are made up: what is read once in ten seconds, or in a
// minute, is in it with its share. Run:
//   sources_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "bench_support.h"
#include "dial9/crash.h"
#include "dial9/recorder.h"
#include "recorder/heartbeat.h"
#include "recorder/kept_files.h"
#include "recorder/seen_code.h"
#include "sources/accept_queues.h"
#include "sources/function_names.h"
#include "sources/loaded_modules.h"
#include "sources/platform_stalls.h"
#include "sources/socket_health.h"

namespace {

using namespace dial9;
using namespace dial9::bench;
using namespace dial9::internal;

// One that takes what is recorded, as long as the benchmark runs.
class Recording {
 public:
  Recording() : recorder_(Recorder::start(RecorderOptions::memory(kBytes)).first) {}
  ~Recording() { close_kept_files(); }

 private:
  static constexpr std::uint64_t kBytes = std::uint64_t{32} << 20;
  Recorder recorder_;
};

// A socket that listens on loopback, on a port of the kernel's choice.
UniqueFd listen_somewhere() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool is_listening =
      fd && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(fd.get(), 16) == 0;
  return is_listening ? std::move(fd) : UniqueFd();
}

UniqueFd connect_to(const UniqueFd& listener) {
  sockaddr_in address{};
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool is_connected = ::getsockname(listener.get(), generic, &bytes) == 0 &&
                            ::connect(fd.get(), generic, bytes) == 0;
  return is_connected ? std::move(fd) : UniqueFd();
}

void system_call(benchmark::State& state) {
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(::syscall(SYS_getppid));
  set_ns(state, begin_ns);
}

void accept_queues(benchmark::State& state) {
  constexpr std::uint64_t kPeriodNs = kSecond * 4 / 10;
  const Recording recording;
  std::vector<UniqueFd> listeners;
  for (std::int64_t i = 0; i < state.range(0); ++i) listeners.push_back(listen_somewhere());
  AcceptQueues queues;
  std::uint64_t now_ns = kSecond;
  queues.sample(now_ns);
  if (queues.listeners().size() != listeners.size()) return state.SkipWithError("not all found");
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) queues.sample(now_ns += kPeriodNs);
  set_ns(state, begin_ns);
  constexpr double kLooksASecond = double{kSecond} / double{kPeriodNs};
  state.counters["us_a_second"] = state.counters["ns"] * kLooksASecond / 1e3;
}

void platform_stalls_a_second(benchmark::State& state) {
  const Recording recording;
  PlatformSeams seams = platform_seams();
  // No file becomes a dear one by what interrupts this machine, and would be left out.
  seams.cost_clock_ns = [clock = seams.cost_clock_ns] {
    benchmark::DoNotOptimize(clock());
    return std::uint64_t{0};
  };
  PlatformStalls stalls(seams);
  std::uint64_t now_ns = kSecond;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i) stalls.sample(now_ns += kSecond / 10);
  }
  set_ns(state, begin_ns);
}

// The collector wakes each 5 ms while the host records.
void heartbeats_a_second(benchmark::State& state) {
  constexpr std::uint64_t kSleepNs = 5'000'000;
  std::uint64_t now_ns = kSecond;
  Heartbeat heartbeat(
      [&] {
        benchmark::DoNotOptimize(read_clock_ns(CLOCK_MONOTONIC));
        return now_ns;
      },
      process_cpu_ns);
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    for (std::uint64_t slept_ns = 0; slept_ns < kSecond; slept_ns += kSleepNs) {
      heartbeat.sleeps(kSleepNs);
      now_ns += kSleepNs;
      benchmark::DoNotOptimize(heartbeat.wakes());
    }
  }
  set_ns(state, begin_ns);
}

void connection_of_a_slow_wait(benchmark::State& state) {
  const UniqueFd listener = listen_somewhere();
  const UniqueFd fd = connect_to(listener);
  const auto cookie = connection_cookie(fd.get());
  if (!cookie) return state.SkipWithError("no connection on loopback");
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(read_socket_health(fd.get(), *cookie));
  set_ns(state, begin_ns);
}

void look_at_modules(benchmark::State& state) {
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(load_counts());
  set_ns(state, begin_ns);
}

// Addresses spread over the code of all modules, as many as are kept between two looks.
std::vector<std::uint64_t> addresses_of_code() {
  constexpr std::uint64_t kMost = 4'000;
  const LoadedModules loaded = loaded_modules();
  std::uint64_t bytes = 0;
  for (const ModuleRecord& module : loaded.modules) bytes += module.end - module.begin;
  std::vector<std::uint64_t> addresses;
  for (const ModuleRecord& module : loaded.modules) {
    for (std::uint64_t at = module.begin; at < module.end && addresses.size() < kMost;) {
      addresses.push_back(at);
      at += bytes / kMost + 1;
    }
  }
  return addresses;
}

void function_name(benchmark::State& state) {
  const Recording recording;
  const std::vector<std::uint64_t> addresses = addresses_of_code();
  std::uint64_t names = 0;
  std::uint64_t now_ns = kSecond;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    FunctionNames source;
    now_ns = source.attend(now_ns);
    see_code(addresses, FirstFrame::kInterrupted);
    // Until nothing comes for some steps: tables are read in pieces.
    for (int quiet = 0; quiet < 200; ++quiet) {
      now_ns = source.attend(now_ns);
      for (const SourceStream& stream : source.take()) {
        names += stream.info.events;
        quiet = 0;
      }
    }
  }
  if (names == 0) return state.SkipWithError("no function was named");
  set_ns(state, begin_ns, names);
  state.counters["names"] = static_cast<double>(names) / static_cast<double>(state.iterations());
  want_seen_code(false);
}

void start_threads(benchmark::State& state, bool has_crash_stack) {
  const std::uint64_t begin_ns = process_cpu_ns();
  for (auto _ : state) {
    std::thread([&] {
      if (has_crash_stack && !add_crash_stack()) std::abort();
    }).join();
  }
  state.counters["ns"] =
      static_cast<double>(process_cpu_ns() - begin_ns) / static_cast<double>(state.iterations());
}
void thread_bare(benchmark::State& state) { start_threads(state, false); }
void thread_with_crash_stack(benchmark::State& state) { start_threads(state, true); }

BENCHMARK(system_call);
BENCHMARK(accept_queues)->Arg(1)->Arg(16)->Arg(128);
BENCHMARK(platform_stalls_a_second);
BENCHMARK(heartbeats_a_second);
BENCHMARK(connection_of_a_slow_wait);
BENCHMARK(look_at_modules);
BENCHMARK(function_name)->Iterations(3);
BENCHMARK(thread_bare)->UseRealTime();
BENCHMARK(thread_with_crash_stack)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
