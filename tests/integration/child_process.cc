// Child processes by fork and exec, waited for through a pidfd so that a deadline needs no signal.
// SPDX-License-Identifier: Apache-2.0
#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dial9::testing {
namespace {

using Clock = std::chrono::steady_clock;

// True once `fd` is readable or ended; false at `until`.
bool wait_readable(int fd, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{fd, POLLIN, 0};
    const int count = ::poll(&entry, 1, static_cast<int>(left));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string ExitStatus::text() const {
  if (has_timed_out) return "did not end in time";
  if (signal != 0) return std::string("ended by ") + strsignal(signal);
  return "exit code " + std::to_string(code);
}

ChildProcess::ChildProcess(std::vector<std::string> arguments, const std::string& stderr_path,
                           std::vector<std::string> environment) {
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {  // only async-signal-safe calls from here on
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(ends[1], STDOUT_FILENO);
    const int log = ::open(stderr_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (log >= 0) ::dup2(log, STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ends[0];
}

ChildProcess::~ChildProcess() {
  if (!status_ && pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
}

bool ChildProcess::fill(Clock::time_point until) {
  if (output_ < 0 || !wait_readable(output_, until)) return false;
  std::array<char, 65536> bytes{};
  const ssize_t count = ::read(output_, bytes.data(), bytes.size());
  if (count <= 0) return false;
  buffered_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

std::optional<std::string> ChildProcess::read_line(std::chrono::milliseconds deadline) {
  const auto until = Clock::now() + deadline;
  std::size_t end = 0;
  while ((end = buffered_.find('\n')) == std::string::npos) {
    if (!fill(until)) return std::nullopt;
  }
  std::string line = buffered_.substr(0, end);
  buffered_.erase(0, end + 1);
  return line;
}

std::string ChildProcess::read_all(std::chrono::milliseconds deadline) {
  const auto until = Clock::now() + deadline;
  while (fill(until)) {
  }
  return std::exchange(buffered_, {});
}

void ChildProcess::send_signal(int signal) {
  if (pid_ > 0 && !status_) ::kill(pid_, signal);
}

ExitStatus ChildProcess::wait(std::chrono::milliseconds deadline) {
  if (status_) return *status_;
  ExitStatus status;
  if (pid_ > 0) {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    status.has_timed_out = !wait_readable(handle, Clock::now() + deadline);
    if (handle >= 0) ::close(handle);
    if (status.has_timed_out) ::kill(pid_, SIGKILL);
    int raw = 0;
    ::waitpid(pid_, &raw, 0);
    if (WIFEXITED(raw)) status.code = WEXITSTATUS(raw);
    if (WIFSIGNALED(raw)) status.signal = WTERMSIG(raw);
  }
  status_ = status;
  return status;
}

Finished run_program(std::vector<std::string> arguments, const std::string& stderr_path,
                     std::vector<std::string> environment) {
  ChildProcess child(std::move(arguments), stderr_path, std::move(environment));
  Finished finished;
  finished.output = child.read_all();
  finished.status = child.wait();
  return finished;
}

}  // namespace dial9::testing
