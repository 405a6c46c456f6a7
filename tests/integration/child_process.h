// A child process of a test: started with its standard output in a pipe, read line by line,
// signalled and waited for, each with a deadline. Killed and reaped when the object goes, on every
// path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dial9::testing {

inline constexpr auto kDefaultDeadline = std::chrono::seconds(60);

struct ExitStatus {
  int code = -1;   // valid if signal is 0
  int signal = 0;  // that ended it
  bool has_timed_out = false;

  bool ok() const { return code == 0 && signal == 0 && !has_timed_out; }
  std::string text() const;
};

class ChildProcess {
 public:
  // Runs `arguments` (the first is the program's path) with `environment` ("NAME=value") added to
  // the test's own. Standard error goes to the file `stderr_path`. A failure to start shows as exit
  // code 127.
  ChildProcess(std::vector<std::string> arguments, const std::string& stderr_path,
               std::vector<std::string> environment = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The next line of standard output without its newline; nothing at its end or at the deadline.
  std::optional<std::string> read_line(std::chrono::milliseconds deadline = kDefaultDeadline);

  // The rest of standard output, up to its end or the deadline.
  std::string read_all(std::chrono::milliseconds deadline = kDefaultDeadline);

  void send_signal(int signal);

  // Waits for the end; after the deadline kills it and says so.
  ExitStatus wait(std::chrono::milliseconds deadline = kDefaultDeadline);

 private:
  bool fill(std::chrono::steady_clock::time_point until);

  pid_t pid_ = -1;
  int output_ = -1;
  std::string buffered_;
  std::optional<ExitStatus> status_;
};

// Runs a program to its end.
struct Finished {
  ExitStatus status;
  std::string output;
};
Finished run_program(std::vector<std::string> arguments, const std::string& stderr_path,
                     std::vector<std::string> environment = {});

}  // namespace dial9::testing
