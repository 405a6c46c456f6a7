// sigaction() and its like, for the preloaded libraries: a host that knows nothing of dial9 may
// reset or take the signal that samples come by, and isn't ended by the next one. All other signals
// go straight on. What isn't seen: system calls made without libc, sigset().
// Spec: docs/spec/cpu_samples.md, "The signal".
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include "interpose/wait.h"
#include "recorder/shared_signal.h"

DIAL9_FIND_AT_LOAD(nullptr, sigaction,
                   int (*)(int, const struct sigaction*, struct sigaction*) noexcept)

DIAL9_FIND_AT_LOAD(nullptr, signal, sighandler_t (*)(int, sighandler_t) noexcept)
DIAL9_FIND_AT_LOAD(nullptr, __sysv_signal, sighandler_t (*)(int, sighandler_t) noexcept)

namespace dial9::interpose {
namespace {

// After the real one is found, before a recorder starts.
[[gnu::constructor(102)]] void share() noexcept {
  if (const auto real = real_sigaction.get()) internal::share_signals(real);
}

// signal() of a signal that is shared; its flags and mask are those of libc's.
sighandler_t set_handler(int signal, sighandler_t handler, int flags, bool blocks_itself) noexcept {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action{};
  struct sigaction old{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (blocks_itself) sigaddset(&action.sa_mask, signal);
  return internal::host_sigaction(signal, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

sighandler_t set_by(Real<sighandler_t (*)(int, sighandler_t) noexcept>& real, int signal,
                    sighandler_t handler) noexcept {
  if (const auto function = real.get()) return function(signal, handler);
  errno = ENOSYS;
  return SIG_ERR;
}

}  // namespace
}  // namespace dial9::interpose

using namespace dial9::interpose;  // NOLINT: what is defined here are C's names
using dial9::internal::is_shared;

#pragma GCC visibility push(default)
extern "C" {

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  if (is_shared(signal)) return dial9::internal::host_sigaction(signal, action, old);
  if (const auto real = real_sigaction.get()) return real(signal, action, old);
  errno = ENOSYS;
  return -1;
}

sighandler_t signal(int signal, sighandler_t handler) noexcept {
  if (is_shared(signal)) return set_handler(signal, handler, SA_RESTART, true);
  return set_by(real_signal, signal, handler);
}

sighandler_t ssignal(int number, sighandler_t handler) noexcept { return signal(number, handler); }
sighandler_t bsd_signal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}

// What signal() is in a program of plain POSIX or C.
sighandler_t __sysv_signal(int signal, sighandler_t handler) noexcept {
  constexpr int kOnce = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  if (is_shared(signal)) return set_handler(signal, handler, kOnce, false);
  return set_by(real___sysv_signal, signal, handler);
}

sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
  return __sysv_signal(number, handler);
}

}  // extern "C"
#pragma GCC visibility pop
