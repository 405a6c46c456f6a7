// Keeps the signals that a write may raise away from the host: SIGPIPE (nobody reads a pipe),
// SIGXFSZ (the limit on file sizes) and SIGTTOU (a terminal that belongs to another job). Strongest
// property: while it lives, writes of the calling thread fail with an error instead; a signal that
// was pending before stays pending, and none of ours is left behind. Async-signal-safe; four
// system calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace dial9 {

class SignalShield {
 public:
  SignalShield() noexcept {
    sigset_t pending;
    sigemptyset(&shielded_);
    sigemptyset(&pending);
    ::sigpending(&pending);
    for (const int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) {
      if (sigismember(&pending, signal) == 0) sigaddset(&shielded_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &shielded_, &before_);
  }
  ~SignalShield() {
    const int error = errno;
    const timespec at_once{0, 0};
    while (::sigtimedwait(&shielded_, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SignalShield(const SignalShield&) = delete;
  SignalShield& operator=(const SignalShield&) = delete;

 private:
  sigset_t shielded_;
  sigset_t before_;
};

}  // namespace dial9
