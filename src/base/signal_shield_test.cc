// Writes that fail don't reach the host as signals.
// SPDX-License-Identifier: Apache-2.0
#include "base/signal_shield.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/stderr_line.h"

namespace dial9 {
namespace {

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

// Runs with default signals in a process of its own; its exit code, or minus the signal it died of.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int broken_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(100);
  ::close(ends[0]);
  return ends[1];
}

TEST(SignalShield, TurnsABrokenPipeIntoAnError) {
  EXPECT_EQ(in_child([] {
              const int fd = broken_pipe();
              {
                const SignalShield shield;
                if (::write(fd, "x", 1) >= 0 || errno != EPIPE) return 1;
              }
              return is_pending(SIGPIPE) || is_blocked(SIGPIPE) ? 2 : 0;
            }),
            0);
}

TEST(SignalShield, TurnsTheLimitOnFileSizesIntoAnError) {
  EXPECT_EQ(in_child([] {
              const struct rlimit none{0, 0};
              ::setrlimit(RLIMIT_FSIZE, &none);
              const int fd = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
              if (fd < 0) return 0;  // a file system without it
              const SignalShield shield;
              return ::write(fd, "x", 1) < 0 && errno == EFBIG ? 0 : 1;
            }),
            0);
}

TEST(SignalShield, LeavesASignalThatWasPendingBeforePending) {
  EXPECT_EQ(in_child([] {
              sigset_t pipe_only;
              sigemptyset(&pipe_only);
              sigaddset(&pipe_only, SIGPIPE);
              ::pthread_sigmask(SIG_BLOCK, &pipe_only, nullptr);
              ::raise(SIGPIPE);
              {
                const SignalShield shield;
              }
              return is_pending(SIGPIPE) && is_blocked(SIGPIPE) ? 0 : 1;
            }),
            0);
}

TEST(StderrLine, IsOneLineWithOurName) {
  EXPECT_EQ(in_child([] {
              int ends[2];
              if (::pipe2(ends, O_CLOEXEC) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) return 100;
              print_line("it works");
              char read_back[64] = {};
              const ssize_t n = ::read(ends[0], read_back, sizeof read_back);
              return std::string(read_back, n > 0 ? static_cast<std::size_t>(n) : 0) ==
                             "dial9: it works\n"
                         ? 0
                         : 1;
            }),
            0);
}

TEST(StderrLine, NeitherKillsTheHostNorWaitsForAReader) {
  EXPECT_EQ(in_child([] {
              ::dup2(broken_pipe(), STDERR_FILENO);
              print_line("nobody listens");
              int ends[2];
              if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 100;
              const std::string block(4096, 'x');
              while (::write(ends[1], block.data(), block.size()) > 0) {
              }
              ::fcntl(ends[1], F_SETFL, 0);  // full, and it would block now
              ::dup2(ends[1], STDERR_FILENO);
              print_line("nobody reads");
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace dial9
