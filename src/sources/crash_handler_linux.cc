// The handler of fatal signals: record, then pass the signal on. See crash_handler.h.
//
//   on_fatal_signal ─► describe ─► (a fault in here) ─┐
//         │               │                           │ jumps back
//         ▼ ◄─────────────┴───────────────────────────┘
//       pass_on ─► the handler that was there before, with its mask and arguments
//         └──────► none: default action, the same siginfo queued, then return: the signal arrives
//                  at the interrupted instruction
//
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <mutex>
#include <span>

#include "dial9/crash.h"
#include "recorder/last_words.h"
#include "recorder/process_registry.h"
#include "recorder/recording_state.h"
#include "recorder/runtime_host.h"
#include "sources/crash_handler.h"
#include "sources/module_table.h"
#include "sources/signal_frame.h"
#include "unwind/unwind.h"

namespace dial9::internal {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
constexpr std::uint64_t kSecondNs = 1'000'000'000;

// One signal: who handled it before us. Written before our handler is installed, then only read.
struct Chained {
  struct sigaction before;
  bool is_ours;
  bool is_spent;  // `before` wanted one turn only (SA_RESETHAND) and had it
};
constinit Chained g_chained[std::size(kSignals)] = {};
constinit std::mutex g_install;

// Frames of threads that die at the same time; not on the signal stack, which may be small.
struct FrameSlot {
  bool is_taken;
  std::uint64_t frames[kCrashFrames];
};
constinit FrameSlot g_slots[4] = {};

constinit std::uint32_t g_survivable = 0;
constinit std::uint64_t g_last_survivable_ns = 0;

// What a fault inside the handler jumps back to; null: this thread isn't recording a crash.
struct Recovery {
  sigjmp_buf jump;
  FrameSlot* slot = nullptr;
};
constinit __thread Recovery* t_recovery __attribute__((tls_model("initial-exec"))) = nullptr;

Chained* chained_of(int signal) noexcept {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == signal) return &g_chained[i];
  }
  return nullptr;
}

// Raised by the thread itself at this instruction, not sent by somebody.
bool is_fault(const siginfo_t& info) noexcept { return info.si_code > 0; }

std::uint64_t address_of(int signal, const siginfo_t& info) noexcept {
  if (!is_fault(info) || signal == SIGABRT) return 0;
  const void* address = signal == SIGSYS ? info.si_call_addr : info.si_addr;
  return reinterpret_cast<std::uintptr_t>(address);
}

FrameSlot* take_slot() noexcept {
  for (FrameSlot& slot : g_slots) {
    if (!__atomic_exchange_n(&slot.is_taken, true, __ATOMIC_ACQUIRE)) return &slot;
  }
  return nullptr;
}

void give_back(FrameSlot* slot) noexcept {
  if (slot != nullptr) __atomic_store_n(&slot->is_taken, false, __ATOMIC_RELEASE);
}

void record_crash(int signal, const siginfo_t& info, const ucontext_t& context,
                  Recovery& recovery) noexcept {
  std::uint64_t one = 0;
  std::span<std::uint64_t> frames(&one, 1);
  CrashEvent event{};
  event.truncated = true;
  recovery.slot = alternate_stack_left(context) >= kWholeStackBytes ? take_slot() : nullptr;
  std::size_t count = 0;
  if (recovery.slot != nullptr) {
    frames = recovery.slot->frames;
    const unwind::Result walked = unwind::unwind(&context, frames, {.distrust_stack = true});
    count = walked.count;
    event.truncated = walked.truncated();
  } else {
    one = interrupted_instruction(context);
    count = one != 0 ? 1 : 0;
  }
  event.signal = static_cast<std::uint8_t>(signal);
  event.tid = this_tid();
  event.address = address_of(signal, info);
  event.callchain = {frames.data(), count};
  event.code = info.si_code;
  record(event);
}

// True if a CrashEvent was recorded. Whatever goes wrong in here ends here.
[[gnu::noinline]] bool describe(int signal, const siginfo_t& info, const ucontext_t& context,
                                LastWords& words) noexcept {
  if (alternate_stack_left(context) < kLeastStackBytes) return false;
  Recovery recovery;
  volatile bool is_recorded = false;
  if (sigsetjmp(recovery.jump, 0) == 0) {
    t_recovery = &recovery;
    signal_fence();
    if (words.open(kCrashBytes)) {
      record_crash(signal, info, context, recovery);
      is_recorded = true;
    }
  }
  signal_fence();
  t_recovery = nullptr;
  give_back(recovery.slot);
  return is_recorded;
}

// The host's handler may survive the signal, and live on it (a JVM's null checks).
bool may_describe_survivable() noexcept {
  if (__atomic_fetch_add(&g_survivable, 1, __ATOMIC_RELAXED) < kSurvivableAtOnce) return true;
  __atomic_store_n(&g_survivable, kSurvivableAtOnce, __ATOMIC_RELAXED);
  const std::uint64_t now = kernel_now_ns();
  std::uint64_t last = __atomic_load_n(&g_last_survivable_ns, __ATOMIC_RELAXED);
  return now - last >= kSecondNs &&
         __atomic_compare_exchange_n(&g_last_survivable_ns, &last, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED);
}

// The default action, with the signal's own siginfo. It is blocked until this handler returns, so
// that it arrives where the first one did: the core dump is the one without dial9.
void end_process(int signal, siginfo_t* info) noexcept {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  const long pid = ::getpid();
  const long tid = ::syscall(SYS_gettid);
  if (::syscall(SYS_rt_tgsigqueueinfo, pid, tid, signal, info) == 0) return;
  // Refused (a filter): a fault is raised again by its instruction all the same.
  ::syscall(SYS_tgkill, pid, tid, signal);
}

// True if the process goes on after a handler of the host: the signal isn't on its way again.
bool has_survived(int signal) noexcept {
  struct sigaction now{};
  sigset_t pending;
  sigemptyset(&pending);
  ::sigpending(&pending);
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL &&
         sigismember(&pending, signal) == 0;
}

bool is_default(const Chained& chained, const siginfo_t& info) noexcept {
  const auto handler = chained.before.sa_handler;
  // The kernel ends a process by a fault even where the signal is ignored.
  return handler == SIG_DFL || (handler == SIG_IGN && is_fault(info)) ||
         __atomic_load_n(&chained.is_spent, __ATOMIC_RELAXED);
}

// As the kernel would have called it: its mask on top of the interrupted code's.
void call_before(Chained& chained, int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& before = chained.before;
  if (before.sa_handler == SIG_IGN) return;
  if ((before.sa_flags & SA_RESETHAND) != 0) {
    __atomic_store_n(&chained.is_spent, true, __ATOMIC_RELAXED);
  }
  sigset_t mask = static_cast<ucontext_t*>(context)->uc_sigmask;
  sigorset(&mask, &mask, &before.sa_mask);
  if ((before.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, signal);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (signal == SIGBUS && is_fault(*info) && survive_cut_buffers(info->si_addr)) {
    errno = error;
    return;
  }
  auto& interrupted = *static_cast<ucontext_t*>(context);
  Recovery* recovery = t_recovery;
  if (recovery != nullptr && is_fault(*info)) {
    // Our own fault, while recording: back to the signal that this was about.
    ::pthread_sigmask(SIG_SETMASK, &interrupted.uc_sigmask, nullptr);
    siglongjmp(recovery->jump, 1);
  }
  Chained* chained = chained_of(signal);
  if (chained == nullptr) return;
  const bool is_end = is_default(*chained, *info);
  const bool is_ignored = !is_end && chained->before.sa_handler == SIG_IGN;
  LastWords words;
  bool is_described = false;
  if (recovery == nullptr && !is_ignored && (is_end || may_describe_survivable())) {
    is_described = describe(signal, *info, interrupted, words);
    words.close();
  }
  if (is_end) {
    end_process(signal, info);
  } else {
    call_before(*chained, signal, info, context);
    if (is_described && has_survived(signal) && words.open(kCrashBytes)) {
      record(SignalSurvivedEvent{static_cast<std::uint8_t>(signal), this_tid()});
    }
    words.close();
  }
  errno = error;
}

// Who is already handling the signal stays in charge: what is ignored, too, since that is inherited
// over exec, where a handler isn't.
void install(int signal, Chained& chained) noexcept {
  struct sigaction before{};
  if (chained.is_ours || ::sigaction(signal, nullptr, &before) != 0 ||
      before.sa_handler == SIG_IGN) {
    return;
  }
  chained.before = before;
  struct sigaction action{};
  action.sa_sigaction = on_fatal_signal;
  // SA_NODEFER: a fault in here comes back here, instead of ending the process with no turn for the
  // host's handler. That one runs on the stack that we run on, so it is the one that it asked for:
  // the alternate one may be too small for it, and a jump out of it may not be its habit.
  const int stack = before.sa_handler == SIG_DFL ? SA_ONSTACK : before.sa_flags & SA_ONSTACK;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | stack | (before.sa_flags & SA_RESTART);
  sigemptyset(&action.sa_mask);
  chained.is_ours = ::sigaction(signal, &action, nullptr) == 0;
}

void keep_ready() noexcept {
  unwind::prepare();
  keep_chunk_in_reserve();
}

}  // namespace
}  // namespace dial9::internal

namespace dial9 {

Status install_crash_handler() noexcept {
  using namespace internal;
  try {
    const std::lock_guard lock(g_install);
    // Refused where it is there already: a second call.
    (void)add_paced_source("crash_handler", std::chrono::seconds(1), SourcePace::kWhileBusy,
                           keep_ready);
    unwind::prepare();
    (void)require_module_table();  // a crash without names is one all the same
    for (std::size_t i = 0; i < std::size(kSignals); ++i) install(kSignals[i], g_chained[i]);
    set_worker_hook([] { (void)add_crash_stack(); });
    return add_crash_stack();
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
