// What a process costs that does nothing, with 32 threads that wait: bare, and with a recorder that
// is on, as the environment has it by default, all sources included. CPU time of the whole process
// a second, and how often its threads woke, seen from another process. Each is a child, which
// comes to rest first: what a start costs, function names above all, isn't in it. Takes 6 s, and 4
// a repetition. Run:
//   idle_bench
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "bench_support.h"
#include "dial9/recorder.h"

namespace {

using namespace dial9;
using namespace dial9::bench;
using namespace std::chrono_literals;

// A child that does nothing, until it is killed.
class IdleProcess {
 public:
  explicit IdleProcess(bool is_recorded) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    constexpr int kThreads = 32;
    const WaitingThreads threads(kThreads);
    const EnvRecorder recorder = is_recorded ? recorder_from_env() : EnvRecorder();
    if (is_recorded && !recorder.status) ::_exit(1);
    for (;;) ::pause();
  }
  ~IdleProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;

  bool is_there() const { return pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  std::uint64_t cpu_ns() const {
    clockid_t clock{};
    return ::clock_getcpuclockid(pid_, &clock) == 0 ? read_clock_ns(clock) : 0;
  }
  // Of all its threads.
  double wakes() const {
    const std::string key = "voluntary_ctxt_switches:";
    double sum = 0;
    std::error_code error;
    const auto tasks = "/proc/" + std::to_string(pid_) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
      std::ifstream status(task.path() / "status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with(key)) sum += std::stod(line.substr(key.size()));
      }
    }
    return sum;
  }

 private:
  const pid_t pid_;
};

void watch(benchmark::State& state, const IdleProcess& process) {
  constexpr auto kTime = 2s;
  constexpr double kSeconds = 2;
  const std::uint64_t cpu_ns = process.cpu_ns();
  const double wakes = process.wakes();
  for (auto _ : state) std::this_thread::sleep_for(kTime);
  if (!process.is_there()) return state.SkipWithError("the process has ended");
  const double seconds = kSeconds * static_cast<double>(state.iterations());
  state.counters["us_a_second"] = static_cast<double>(process.cpu_ns() - cpu_ns) / 1e3 / seconds;
  state.counters["wakes_a_second"] = (process.wakes() - wakes) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("dial9-idle-" + std::to_string(::getpid()));
  ::setenv("DIAL9_ENABLED", "true", 1);
  ::setenv("DIAL9_TRACE_DIR", directory.c_str(), 1);
  {
    const IdleProcess bare(false);
    const IdleProcess recorded(true);
    std::this_thread::sleep_for(6s);
    for (const auto* process : {&bare, &recorded}) {
      benchmark::RegisterBenchmark(process == &bare ? "idle/bare" : "idle/recorded",
                                   [process](benchmark::State& state) { watch(state, *process); })
          ->Iterations(1)
          ->UseRealTime();
    }
    benchmark::RunSpecifiedBenchmarks();
  }
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  return 0;
}
