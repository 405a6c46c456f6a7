// The host's action is two words, so that a signal handler reads it without a lock: the handler's
// address with flags in its upper bits, and the mask. See shared_signal.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/shared_signal.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kAddress = (std::uint64_t{1} << 56) - 1;
constexpr std::uint64_t kIsSet = std::uint64_t{1} << 63;  // by the host; else it is as at exec
constexpr struct {
  std::uint64_t bit;
  int flag;
} kFlags[] = {{std::uint64_t{1} << 62, static_cast<int>(SA_RESETHAND)},
              {std::uint64_t{1} << 61, SA_NODEFER},
              {std::uint64_t{1} << 60, SA_SIGINFO},
              {std::uint64_t{1} << 59, SA_ONSTACK},
              {std::uint64_t{1} << 58, SA_RESTART}};

constinit std::atomic<KernelSigaction> g_real{nullptr};
constinit std::atomic<SharedHandler> g_ours{nullptr};
constinit std::atomic<int> g_signal{0};
constinit std::atomic<pid_t> g_pid{0};
constinit std::atomic<std::uint64_t> g_host{0};
constinit std::atomic<std::uint64_t> g_host_mask{0};

// The kernel's 64 signals of it.
std::uint64_t word_of(const sigset_t& set) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, &set, sizeof word);
  return word;
}

void set_word(sigset_t* set, std::uint64_t word) noexcept {
  sigemptyset(set);
  std::memcpy(set, &word, sizeof word);
}

int flags_of(std::uint64_t host) noexcept {
  int flags = 0;
  for (const auto& one : kFlags) flags |= (host & one.bit) != 0 ? one.flag : 0;
  return flags;
}

std::uint64_t to_word(const struct sigaction& action) noexcept {
  std::uint64_t word = reinterpret_cast<std::uintptr_t>(action.sa_handler) & kAddress;
  for (const auto& one : kFlags) word |= (action.sa_flags & one.flag) != 0 ? one.bit : 0;
  return word | kIsSet;
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 &&
         action.sa_sigaction == g_ours.load(std::memory_order_relaxed);
}

// What the host is told where the kernel has ours.
void show_host(std::uint64_t host, std::uint64_t mask, struct sigaction* old) noexcept {
  old->sa_handler =
      reinterpret_cast<void (*)(int)>(static_cast<std::uintptr_t>(host & kAddress));  // NOLINT
  old->sa_flags = flags_of(host);
  set_word(&old->sa_mask, mask);
}

// Ours under the host's flags: they say on which stack, and whether a call is restarted. All but
// faults are blocked while it runs, as in install_tick_handler(); the host's mask comes with its
// own handler.
struct sigaction beside(const struct sigaction& host) noexcept {
  struct sigaction action{};
  action.sa_sigaction = g_ours.load(std::memory_order_relaxed);
  action.sa_flags =
      SA_SIGINFO | (host.sa_handler == SIG_DFL ? SA_RESTART | SA_ONSTACK
                                               : host.sa_flags & (SA_RESTART | SA_ONSTACK));
  sigfillset(&action.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
    sigdelset(&action.sa_mask, fault);
  }
  return action;
}

void set_thread_mask(std::uint64_t mask) noexcept {
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

std::uint64_t bit_of(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }

}  // namespace

void share_signals(KernelSigaction real) noexcept { g_real.store(real, std::memory_order_release); }

int kernel_sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  const KernelSigaction real = g_real.load(std::memory_order_acquire);
  return real != nullptr ? real(signal, action, old) : ::sigaction(signal, action, old);
}

void share_signal(int signal, SharedHandler ours) noexcept {
  if (g_real.load(std::memory_order_acquire) == nullptr) return;
  const int before = g_signal.load(std::memory_order_relaxed);
  if (before != 0 && before != signal) return;
  g_ours.store(ours, std::memory_order_relaxed);
  struct sigaction now{};
  // A child of a fork that set it for itself, and starts a recorder of its own.
  if (kernel_sigaction(signal, nullptr, &now) == 0 && !is_ours(now)) g_host.store(0);
  g_pid.store(::getpid(), std::memory_order_relaxed);
  g_signal.store(signal, std::memory_order_release);
}

bool is_shared(int signal) noexcept {
  return signal != 0 && signal == g_signal.load(std::memory_order_acquire);
}

int host_sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  if (!is_shared(signal)) return kernel_sigaction(signal, action, old);
  const std::uint64_t host = g_host.load(std::memory_order_acquire);
  const std::uint64_t mask = g_host_mask.load(std::memory_order_relaxed);
  // A child of a vfork() writes into its parent's memory: it has no timers of ours, and needs none
  // of this.
  const bool is_here = ::getpid() == g_pid.load(std::memory_order_relaxed);
  struct sigaction before{};
  int result = 0;
  if (action == nullptr || !is_here || action->sa_handler == SIG_IGN) {
    result = kernel_sigaction(signal, action, &before);
  } else {
    const struct sigaction asked = *action;  // may be the same as `old`
    result = kernel_sigaction(signal, nullptr, &before);
    if (result == 0) {
      g_host_mask.store(word_of(asked.sa_mask), std::memory_order_relaxed);
      g_host.store(to_word(asked), std::memory_order_release);
      const struct sigaction both = beside(asked);
      result = kernel_sigaction(signal, &both, nullptr);
    }
  }
  if (result != 0 || old == nullptr) return result;
  if (is_ours(before)) {
    show_host(host, mask, old);
  } else {
    *old = before;
  }
  return 0;
}

void* host_handler(int signal) noexcept {
  if (!is_shared(signal)) return nullptr;
  const std::uint64_t address = g_host.load(std::memory_order_acquire) & kAddress;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));  // NOLINT: kept as bits
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept(false) {
  if (!is_shared(signal)) return;
  const std::uint64_t host = g_host.load(std::memory_order_acquire);
  if ((host & kAddress) == 0) {
    // Pending until this handler returns; then the default action ends the process.
    struct sigaction by_default{};
    by_default.sa_handler = SIG_DFL;
    (void)kernel_sigaction(signal, &by_default, nullptr);
    ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
    return;
  }
  const int flags = flags_of(host);
  if ((flags & static_cast<int>(SA_RESETHAND)) != 0) {
    std::uint64_t expected = host;  // another thread may have had the one call
    g_host.compare_exchange_strong(expected, host & ~kAddress, std::memory_order_acq_rel);
  }
  std::uint64_t mask = word_of(static_cast<const ucontext_t*>(context)->uc_sigmask) |
                       g_host_mask.load(std::memory_order_relaxed);
  if ((flags & SA_NODEFER) == 0) mask |= bit_of(signal);
  set_thread_mask(mask);
  const auto address = static_cast<std::uintptr_t>(host & kAddress);
  if ((flags & SA_SIGINFO) != 0) {
    reinterpret_cast<SharedHandler>(address)(signal, info, context);  // NOLINT: kept as bits
  } else {
    reinterpret_cast<void (*)(int)>(address)(signal);  // NOLINT: kept as bits
  }
}

}  // namespace dial9::internal
