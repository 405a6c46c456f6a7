// See async_reference.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/testing/async_reference.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "unwind/testing/context.h"

// Of libgcc: the unwind table that covers an address; null: none.
extern "C" const void* _Unwind_Find_FDE(void* pc, void* bases);

namespace dial9::unwind::testing {
namespace {

constexpr std::size_t kMaxFrames = 4096;
#if defined(DIAL9_EMULATED)
constexpr long kIntervalNs = 2'000'000;  // a handler takes that much longer
#else
constexpr long kIntervalNs = 200'000;
#endif

struct Stack {
  std::array<std::uint64_t, kMaxFrames> frames;
  std::size_t count = 0;
};

// Written by the handler on the one sampled thread; read after the timer is gone.
struct State {
  Options options;
  std::atomic<bool> is_on{false};
  std::atomic<std::uint32_t> samples{0};
  std::uint32_t limit = 0;  // samples; then the handler lets the work come to its end
  std::uint32_t equal = 0;
  std::uint32_t whole = 0;
  std::uint32_t deepest = 0;
  Stack ours;
  Stack reference;
  Stack different_ours;
  Stack different_reference;
  StopReason different_stop = StopReason::kEndOfStack;
  bool has_difference = false;
};
State g_state;

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& stack = *static_cast<Stack*>(data);
  if (stack.count == stack.frames.size()) {
    return _URC_END_OF_STACK;
  }
  stack.frames[stack.count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

// libgcc's frames from the interrupted one on; without the 0 that it reports beyond the last.
void walk_reference(std::uint64_t pc, Stack& stack) {
  stack.count = 0;
  _Unwind_Backtrace(add_frame, &stack);
  auto* const end = stack.frames.data() + stack.count;
  auto* const begin = std::find(stack.frames.data(), end, pc);
  std::copy(begin, end, stack.frames.data());
  stack.count = static_cast<std::size_t>(end - begin);
  while (stack.count > 0 && stack.frames[stack.count - 1] == 0) {
    --stack.count;
  }
}

bool has_table(std::uint64_t pc) {
  std::array<void*, 3> bases;
  return _Unwind_Find_FDE(std::bit_cast<void*>(pc), bases.data()) != nullptr;
}

// From an interrupted stub's caller on: for the length of the walk the caller is what was
// interrupted.
void walk_reference_from_stub(std::uint64_t pc, ucontext_t& context, Stack& stack) {
  const ucontext_t interrupted = context;
  return_from_stub(context);
  walk_reference(static_cast<std::uint64_t>(pc_of(context)), stack);
  context = interrupted;
  std::copy_backward(stack.frames.data(), stack.frames.data() + stack.count,
                     stack.frames.data() + stack.count + 1);
  stack.frames[0] = pc;
  ++stack.count;
}

void on_timer(int, siginfo_t*, void* context) {
  if (g_state.is_on.load(std::memory_order_relaxed) &&
      g_state.samples.load(std::memory_order_relaxed) < g_state.limit) {
    compare_here(static_cast<ucontext_t*>(context));
  }
}

std::string describe(std::uint64_t pc) {
  Dl_info info{};
  if (dladdr(std::bit_cast<void*>(pc), &info) == 0 || info.dli_fname == nullptr) {
    return "?";
  }
  std::array<char, 256> text;
  const char* const file = std::strrchr(info.dli_fname, '/');
  std::snprintf(text.data(), text.size(), "%s+0x%lx (%s)",
                file == nullptr ? info.dli_fname : file + 1,
                static_cast<unsigned long>(pc - std::bit_cast<std::uint64_t>(info.dli_fbase)),
                info.dli_sname == nullptr ? "?" : info.dli_sname);
  return text.data();
}

std::string describe(const Stack& stack) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(stack.count, 40); ++i) {
    text += "\n    " + describe(stack.frames[i]);
  }
  return text;
}

}  // namespace

void begin_comparison(const Options& options) {
  prepare();
  g_state.options = options;
  g_state.samples = 0;
  g_state.equal = g_state.whole = g_state.deepest = 0;
  g_state.has_difference = false;
  walk_reference(0, g_state.reference);  // libgcc's own first-call work, outside the handler
}

Comparison end_comparison() {
  Comparison comparison{g_state.samples.load(), g_state.equal, g_state.whole, g_state.deepest, {}};
  if (g_state.has_difference) {
    comparison.first_difference =
        "ours, stop " + std::to_string(static_cast<int>(g_state.different_stop)) + ":" +
        describe(g_state.different_ours) + "\nlibgcc:" + describe(g_state.different_reference);
  }
  return comparison;
}

void compare_here(ucontext_t* context) {
  State& state = g_state;
  const Result result = unwind(context, state.ours.frames, state.options);
  state.ours.count = result.count;
  const std::uint64_t pc = state.ours.frames[0];
  if (kStubsHaveTables || has_table(pc)) {
    walk_reference(pc, state.reference);
  } else {
    walk_reference_from_stub(pc, *context, state.reference);
  }
  const auto frames = [](const Stack& stack) {
    return std::span(stack.frames.data(), stack.count);
  };
  const bool equal = std::ranges::equal(frames(state.ours), frames(state.reference));
  state.equal += equal;
  state.whole += !result.truncated();
  state.deepest = std::max(state.deepest, result.count);
  if ((!equal || result.truncated()) && !state.has_difference) {
    state.has_difference = true;
    state.different_stop = result.stop;
    state.different_ours = state.ours;
    state.different_reference = state.reference;
  }
  state.samples.fetch_add(1, std::memory_order_relaxed);
}

Comparison sample_here(std::uint32_t samples, const std::function<void()>& work,
                       const Options& options) {
  work();  // what the workload sets up once, libraries that it loads among them
  begin_comparison(options);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, &before);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer{};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  g_state.limit = samples;
  g_state.is_on = true;
  const itimerspec interval{{0, kIntervalNs}, {0, kIntervalNs}};
  timer_settime(timer, 0, &interval, nullptr);
  while (g_state.samples.load(std::memory_order_relaxed) < samples) {
    work();
  }
  g_state.is_on = false;
  timer_delete(timer);
  if (before.sa_handler == SIG_DFL) {
    before.sa_handler = SIG_IGN;  // a last signal may still be on its way
  }
  sigaction(SIGPROF, &before, nullptr);
  return end_comparison();
}

Comparison sample_while(std::uint32_t samples, const std::function<void()>& work,
                        const Options& options) {
  Comparison comparison;
  std::thread([&] { comparison = sample_here(samples, work, options); }).join();
  return comparison;
}

bool signals_are_asynchronous() {
#if defined(DIAL9_SANITIZED_THREAD)
  return false;
#else
  return true;
#endif
}

}  // namespace dial9::unwind::testing
