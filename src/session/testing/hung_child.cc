// See hung_child.h.
// SPDX-License-Identifier: Apache-2.0
#include "session/testing/hung_child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <thread>

#include "dial9/recorder.h"
#include "dial9/runtime.h"

namespace dial9::testing {
namespace {

void tell(int fd) {
  const char byte = 'r';
  while (::write(fd, &byte, 1) < 0 && errno == EINTR) {
  }
}

bool hear(int fd, int count) {
  char byte = 0;
  while (count > 0) {
    const ssize_t got = ::read(fd, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got == 1) --count;
  }
  return true;
}

struct Hang {
  runtime::RuntimeId runtime = 0;
  std::mutex first;
  std::mutex second;
  int told = -1;       // each worker says: I hold mine, in my poll
  int held_read = -1;  // and waits until both do
  int held_write = -1;
};

void hang(Hang& hang, bool is_first, const HangOptions& options, runtime::TaskRef starved) {
  static runtime::Place place_0{"hang.cc:7"};
  static runtime::Place place_1{"hang.cc:9"};
  runtime::Place& place = is_first ? place_0 : place_1;
  runtime::enter_worker(hang.runtime);
  runtime::park();  // so that the records say which thread the worker is
  runtime::unpark();
  if (is_first) {
    for (std::uint32_t i = 0; i < options.early_polls; ++i) {
      runtime::task_ready(starved.id);
      const runtime::PollScope poll(hang.runtime, starved);
    }
    runtime::task_ready(starved.id);
  }
  const runtime::PollScope poll(hang.runtime, {runtime::task_spawn(place, hang.runtime), &place});
  const std::lock_guard mine(is_first ? hang.first : hang.second);
  tell(hang.told);
  hear(hang.held_read, 1);
  const std::lock_guard never(is_first ? hang.second : hang.first);
}

RecorderOptions recorder_options(const HangOptions& options) {
  return options.directory.empty() ? RecorderOptions::memory(16 << 20)
                                   : RecorderOptions::disk(options.directory);
}

// Says so by the end of `done`.
void go_on(const HangOptions& options, Recorder& recorder, int done) {
  using Then = HangOptions::Then;
  if (options.then == Then::kExecs) ::execl("/bin/sleep", "sleep", "1000", nullptr);
  if (options.then == Then::kStopsRecorder || options.then == Then::kStartsAnother) {
    recorder.stop(std::chrono::seconds(60));
  }
  if (options.then == Then::kStartsAnother) {
    static auto another = Recorder::start(recorder_options(options));
    if (!another.second) ::_exit(10);
  }
  ::close(done);
  if (options.then == Then::kEnds) ::syscall(SYS_exit, 0);
}

[[noreturn]] void be_child(const HangOptions& options, int ready, int go = -1, int done = -1) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto [recorder, status] = options.has_recorder ? Recorder::start(recorder_options(options))
                                                 : std::pair<Recorder, Status>();
  if (!status) ::_exit(3);
  static runtime::Place starved_place{"starved.cc:3"};
  Hang state;
  int told[2];
  int held[2];
  if (::pipe(told) != 0 || ::pipe(held) != 0) ::_exit(4);
  state.told = told[1];
  state.held_read = held[0];
  state.runtime = runtime::register_runtime("hung");
  const runtime::TaskRef starved{runtime::task_spawn(starved_place, state.runtime), &starved_place};
  std::thread one([&] { hang(state, true, options, starved); });
  if (!hear(told[0], 1)) ::_exit(5);
  std::thread two([&] { hang(state, false, options, starved); });
  if (!hear(told[0], 1)) ::_exit(5);
  tell(held[1]);
  tell(held[1]);
  if (options.turns_off) recorder.disable();
  tell(ready);
  if (go >= 0 && hear(go, 1)) go_on(options, recorder, done);
  one.join();  // for ever
  ::_exit(6);
}

// From outside: the first process of a pid namespace can't stop itself.
bool stop(pid_t pid) {
  int status = 0;
  return ::kill(pid, SIGSTOP) == 0 && ::waitpid(pid, &status, WUNTRACED) == pid &&
         WIFSTOPPED(status);
}

// The first process of a new pid namespace, and this one waits for it: tells its id as it is seen
// outside, and whether it is where it should be.
[[noreturn]] void be_parent_of_namespace(const HangOptions& options, int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int inner[2];
  if (::unshare(CLONE_NEWPID) != 0 || ::pipe(inner) != 0) ::_exit(7);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(inner[0]);
    be_child(options, inner[1]);
  }
  ::close(inner[1]);
  if (child < 0 || !hear(inner[0], 1)) ::_exit(8);
  if (options.stops && !stop(child)) ::_exit(9);
  while (::write(ready, &child, sizeof child) < 0 && errno == EINTR) {
  }
  ::waitpid(child, nullptr, 0);
  ::_exit(0);
}

}  // namespace

HungChild::HungChild(const HangOptions& options) {
  int ready[2];
  int go[2];
  int done[2];
  // An exec closes its end of `done`.
  if (::pipe(ready) != 0 || ::pipe(go) != 0 || ::pipe2(done, O_CLOEXEC) != 0) return;
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fd : {ready[0], go[1], done[0]}) ::close(fd);
    if (options.has_own_pids) be_parent_of_namespace(options, ready[1]);
    be_child(options, ready[1], go[0], done[1]);
  }
  for (const int fd : {ready[1], go[0], done[1]}) ::close(fd);
  go_ = go[1];
  done_ = done[0];
  if (options.has_own_pids) {
    between_ = child;
    is_ready_ = ::read(ready[0], &pid_, sizeof pid_) == static_cast<ssize_t>(sizeof pid_);
  } else {
    pid_ = child;
    is_ready_ = pid_ > 0 && hear(ready[0], 1) && (!options.stops || stop(pid_));
  }
  ::close(ready[0]);
}

void HungChild::kill_now() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  if (between_ > 0) ::waitpid(between_, nullptr, 0);  // ends when it does
  if (pid_ > 0 && between_ <= 0) ::waitpid(pid_, nullptr, 0);
  pid_ = between_ = -1;
}

bool HungChild::go_on() {
  char byte = 0;
  tell(go_);
  return ::read(done_, &byte, 1) == 0;  // an exec has its new memory when it closes descriptors
}

HungChild::~HungChild() {
  kill_now();
  ::close(go_);
  ::close(done_);
}

}  // namespace dial9::testing
