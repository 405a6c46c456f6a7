// What `dial9 top` costs the process that it looks at: the CPU time of a poll, recorded by a busy
// thread, with and without a `top` that looks as often as it can, in turns. A ratio of CPU times,
// so that a busy machine doesn't matter much.
//
//   build/release/bench/top/top_bench build/release/dial9 [ROUNDS [--json]]
//
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dial9/recorder.h"
#include "dial9/runtime.h"

namespace {

constexpr std::uint64_t kPolls = 1'000'000;

double thread_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

long own_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Looks at `pid` again and again until killed, one `top` after the other.
pid_t start_tops(const char* dial9, pid_t pid) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, 0);
  ::dup2(null, 1);
  const std::string id = std::to_string(pid);
  for (;;) {
    const pid_t top = ::fork();
    if (top == 0) {
      ::execl(dial9, dial9, "top", "--once", id.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(top, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ::_exit(1);
  }
}

// ns of CPU time a poll; the voluntary switches of this thread are added up.
double measure(dial9::runtime::RuntimeId runtime, dial9::runtime::TaskRef task, long& switches) {
  const long switches_before = own_switches();
  const double before = thread_seconds();
  for (std::uint64_t i = 0; i < kPolls; ++i) {
    const dial9::runtime::PollScope poll(runtime, task);
  }
  const double took = thread_seconds() - before;
  switches += own_switches() - switches_before;
  return took * 1e9 / static_cast<double>(kPolls);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Recording {
  dial9::Recorder recorder;
  dial9::runtime::RuntimeId runtime = 0;
  dial9::runtime::TaskRef task;
};

Recording start_recording() {
  static dial9::runtime::Place place{"top_bench"};
  auto [recorder, status] = dial9::Recorder::start(dial9::RecorderOptions::memory(64 << 20));
  if (!status) {
    std::fprintf(stderr, "top_bench: %s\n", status.message().c_str());
    std::exit(1);
  }
  Recording out;
  out.recorder = std::move(recorder);
  out.runtime = dial9::runtime::register_runtime("bench");
  dial9::runtime::enter_worker(out.runtime);
  out.task = {dial9::runtime::task_spawn(place, out.runtime), &place};
  return out;
}

// A process that has recorded as much, and waits until killed.
pid_t start_other() {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    const Recording recording = start_recording();
    long switches = 0;
    measure(recording.runtime, recording.task, switches);
    if (::write(ready[1], &byte, 1) == 1) ::pause();
    ::_exit(0);
  }
  if (::read(ready[0], &byte, 1) != 1) return -1;
  return child;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "top_bench DIAL9 [ROUNDS [--json]]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const pid_t other = start_other();  // before this one's recorder: a fork of it records nothing
  const Recording recording = start_recording();
  std::vector<double> times[2];  // looked at: the other, this one
  std::vector<double> ratios;
  long switches[2] = {0, 0};
  for (int round = 0; round < rounds; ++round) {
    for (const int is_watched : {0, 1}) {
      const pid_t tops = start_tops(argv[1], is_watched == 1 ? ::getpid() : other);
      times[is_watched].push_back(measure(recording.runtime, recording.task, switches[is_watched]));
      int ended = 0;
      if (::waitpid(tops, &ended, WNOHANG) != 0) {
        std::fprintf(stderr, "top_bench: %s top failed\n", argv[1]);
        return 1;
      }
      ::kill(tops, SIGKILL);
      ::waitpid(tops, &ended, 0);
    }
    ratios.push_back(times[1].back() / times[0].back());
  }
  ::kill(other, SIGKILL);
  if (argc > 3 && std::string_view(argv[3]) == "--json") {
    std::printf("{\"other_watched\": %.3f, \"watched\": %.3f}\n", median(times[0]),
                median(times[1]));
    return 0;
  }
  std::printf(
      "a poll while another process is looked at: %.2f ns, while this one is: %.2f ns, "
      "median of %d ratios %.3f\n",
      median(times[0]), median(times[1]), rounds, median(ratios));
  std::printf("voluntary context switches: %ld, %ld\n", switches[0], switches[1]);
  return 0;
}
