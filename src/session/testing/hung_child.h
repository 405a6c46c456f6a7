// A child process with a real recorder whose workers really hang, for tests of what looks at other
// processes. Nothing waits for time: the child says through a pipe that it is where it should be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace dial9::testing {

// Worker 0 is inside a poll of task `deadlocked` ("hang.cc:7"), worker 1 too ("hang.cc:9"): each
// holds the mutex that the other waits for. Task `starved` ("starved.cc:3") was woken and never
// ran. Before that, worker 0 has polled `starved` `early_polls` times.
struct HangOptions {
  // What its main thread does when go_on() says so.
  enum class Then : std::uint8_t {
    kNothing,
    kStopsRecorder,  // its workers hold on to their thread buffers
    kStartsAnother,  // the same, and a new recorder after it
    kExecs,          // another program, which records nothing
    kEnds,           // its main thread alone: the workers hang on
  };
  std::string directory;  // empty: memory ring
  std::uint32_t early_polls = 10;
  bool stops = true;  // SIGSTOP at the end
  bool has_recorder = true;
  bool turns_off = false;     // recording, when all of that has happened
  bool has_own_pids = false;  // in a pid namespace of its own; needs root
  Then then = Then::kNothing;
};

class HungChild {
 public:
  // Returns when all of that has happened, and the child is stopped if it is to be.
  explicit HungChild(const HangOptions& options);
  ~HungChild();  // kills it
  HungChild(const HungChild&) = delete;
  HungChild& operator=(const HungChild&) = delete;

  pid_t pid() const { return pid_; }
  bool is_ready() const { return is_ready_; }
  // Returns when it has done `then`. It must not be stopped.
  bool go_on();
  void kill_now();

 private:
  pid_t pid_ = -1;
  pid_t between_ = -1;  // its parent, where that isn't this process
  bool is_ready_ = false;
  int go_ = -1;
  int done_ = -1;
};

}  // namespace dial9::testing
