// A program that knows nothing of dial9 and treats SIGPROF as real ones do: perl resets it, sort
// handles it by handing it on. Argument: default, handler, signal, sysv. Exits with 7.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <time.h>

#include <cstring>

extern "C" sighandler_t __sysv_signal(int, sighandler_t) noexcept;

namespace {

void end_by(int number) {
  signal(number, SIG_DFL);
  raise(number);
}

// CPU time of its own, of which each 10 ms are a sample.
void compute_for(double seconds) {
  timespec now{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 < seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  compute_for(0.3);  // its thread has a timer by now
  struct sigaction before{};
  if (sigaction(SIGPROF, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return 3;
  struct sigaction action{};
  action.sa_handler = std::strcmp(argv[1], "handler") == 0 ? end_by : SIG_DFL;
  if (std::strcmp(argv[1], "signal") == 0) {
    if (signal(SIGPROF, end_by) != SIG_DFL || signal(SIGPROF, SIG_DFL) != end_by) return 4;
  } else if (std::strcmp(argv[1], "sysv") == 0) {
    if (__sysv_signal(SIGPROF, end_by) != SIG_DFL) return 5;
  } else if (sigaction(SIGPROF, &action, nullptr) != 0) {
    return 6;
  }
  compute_for(0.6);
  return 7;
}
