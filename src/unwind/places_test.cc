// Stacks in odd places: other signals' handlers, alternate stacks, fibers, the main thread,
// libraries that come and go. The reference is libgcc where it can walk there, else known callers.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <functional>
#include <thread>

#include "unwind/modules.h"
#include "unwind/process_memory.h"
#include "unwind/testing/async_reference.h"
#include "unwind/testing/context.h"
#include "unwind/thread_stack.h"
#include "unwind/unwind.h"

namespace dial9::unwind {
namespace {

using testing::Comparison;

struct Walked {
  Result result;
  std::array<std::uint64_t, 1024> frames{};

  // Is there a frame in the first `bytes` of the function at `begin`?
  bool passes(const void* begin, std::uint64_t bytes = 4096) const {
    const auto from = std::bit_cast<std::uint64_t>(begin);
    return std::any_of(frames.begin(), frames.begin() + result.count,
                       [&](std::uint64_t pc) { return pc > from && pc < from + bytes; });
  }
};

Walked g_walked;
Options g_options;

void walk_in_handler(int, siginfo_t*, void* context) {
  g_walked.result = unwind(static_cast<const ucontext_t*>(context), g_walked.frames, g_options);
}

void compare_in_handler(int, siginfo_t*, void* context) {
  testing::compare_here(static_cast<ucontext_t*>(context));
}

// Installs a handler while it lives.
class Handler {
 public:
  Handler(int signal, void (*function)(int, siginfo_t*, void*), int flags = 0) : signal_(signal) {
    struct sigaction action{};
    action.sa_sigaction = function;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(signal, &action, &before_);
  }
  ~Handler() { sigaction(signal_, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  int signal_;
  struct sigaction before_{};
};

// An alternate signal stack while it lives, for the calling thread.
class AlternateStack {
 public:
  AlternateStack() {
    const stack_t stack{memory_.data(), 0, memory_.size()};
    sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    const stack_t none{nullptr, SS_DISABLE, 0};
    sigaltstack(&none, nullptr);
  }

 private:
  std::vector<char> memory_ = std::vector<char>(256 * 1024);
};

[[gnu::noinline]] void call_at_depth(int depth, const std::function<void()>& work) {
  volatile int here = depth;
  if (depth == 0) {
    work();
  } else {
    call_at_depth(depth - 1, work);
  }
  here = here + 1;
}

class Places : public ::testing::Test {
 protected:
  void SetUp() override {
    g_options = {};
    prepare();
  }
  static void expect_whole(const Walked& walked) {
    EXPECT_EQ(walked.result.stop, StopReason::kEndOfStack);
    EXPECT_EQ(walked.result.method, Method::kTables);
  }
};

// Where the reference is libgcc's walk in a handler.
class SampledPlaces : public Places {
 protected:
  void SetUp() override {
    if (!testing::signals_are_asynchronous()) {
      GTEST_SKIP() << "ThreadSanitizer calls handlers itself, later: libgcc stops there";
    }
    Places::SetUp();
  }
};

TEST_F(SampledPlaces, AnInterruptedSignalHandlerIsPassedThrough) {
  const Handler inner(SIGUSR2, compare_in_handler);
  const Handler outer(SIGUSR1, [](int, siginfo_t*, void*) {
    for (int i = 0; i < 50; ++i) {
      raise(SIGUSR2);
    }
  });
  testing::begin_comparison({});
  call_at_depth(20, [] { raise(SIGUSR1); });
  const Comparison comparison = testing::end_comparison();
  EXPECT_EQ(comparison.samples, 50u);
  EXPECT_EQ(comparison.equal, 50u) << comparison.first_difference;
  EXPECT_EQ(comparison.whole, 50u);
  EXPECT_GT(comparison.deepest, 24u);
}

TEST_F(SampledPlaces, SamplesOfASignalHandlerThatWorksEqualLibgcc) {
#if defined(DIAL9_EMULATED)
  GTEST_SKIP() << "qemu delivers the samples so late that the handler never ends";
#endif
  const Handler outer(SIGUSR1, [](int, siginfo_t*, void*) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 200000; ++i) {
      sum = sum + i;
    }
  });
  const Comparison comparison = testing::sample_while(200, [] { raise(SIGUSR1); });
  EXPECT_EQ(comparison.equal, comparison.samples) << comparison.first_difference;
  EXPECT_EQ(comparison.whole, comparison.samples);
}

TEST_F(SampledPlaces, AHandlerOnAnAlternateStackLeadsBackToTheThreadsStack) {
  const AlternateStack stack;
  const Handler inner(SIGUSR2, compare_in_handler, SA_ONSTACK);
  const Handler outer(SIGUSR1, [](int, siginfo_t*, void*) { raise(SIGUSR2); }, SA_ONSTACK);
  testing::begin_comparison({});
  call_at_depth(20, [] { raise(SIGUSR1); });
  const Comparison comparison = testing::end_comparison();
  EXPECT_EQ(comparison.samples, 1u);
  EXPECT_EQ(comparison.equal, 1u) << comparison.first_difference;
  EXPECT_EQ(comparison.whole, 1u);
}

TEST_F(SampledPlaces, TheMainThreadsStackIsKnownAndWhole) {
  const Comparison comparison =
      testing::sample_here(100, [] { call_at_depth(30, [] { std::vector<int> v(1000); }); });
  EXPECT_EQ(comparison.equal, comparison.samples) << comparison.first_difference;
  EXPECT_EQ(comparison.whole, comparison.samples);
}

TEST_F(Places, ADeepRecursionIsWholeToItsLastFrame) {
  const Handler handler(SIGUSR2, compare_in_handler);
  testing::begin_comparison({});
  std::thread([] { call_at_depth(3000, [] { raise(SIGUSR2); }); }).join();
  const Comparison comparison = testing::end_comparison();
  EXPECT_EQ(comparison.equal, 1u) << comparison.first_difference;
  EXPECT_EQ(comparison.whole, 1u);
  EXPECT_GT(comparison.deepest, 3000u);
}

// A fiber's stack: its own mapping with unmapped pages around it.
class Fiber {
 public:
  explicit Fiber(void (*body)()) {
    memory_ = mmap(nullptr, kBytes + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* const stack = static_cast<char*>(memory_) + kGuard;
    mprotect(stack, kBytes, PROT_READ | PROT_WRITE);
    getcontext(&context_);
    context_.uc_stack = {stack, 0, kBytes};
    context_.uc_link = &caller_;
    makecontext(&context_, body, 0);
  }
  ~Fiber() { munmap(memory_, kBytes + 2 * kGuard); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  void run() { swapcontext(&caller_, &context_); }

 private:
  static constexpr std::size_t kBytes = 256 * 1024;
  static constexpr std::size_t kGuard = 64 * 1024;
  void* memory_;
  ucontext_t context_;
  ucontext_t caller_;
};

// The entry that makecontext gives a fiber is a return address without a call before it, so the
// look-up just before it finds nothing: libgcc ends there, and so do we, saying so.
TEST_F(SampledPlaces, AFibersStackReachesItsEntryAndNeverLeavesItsMapping) {
#ifdef DIAL9_SANITIZED
  GTEST_SKIP() << "sanitizers don't know makecontext's stacks";
#endif
  static Comparison comparison;
  std::thread([] {
    Fiber fiber([] {
      comparison =
          testing::sample_here(200, [] { call_at_depth(20, [] { std::vector<int> v(1000); }); });
    });
    fiber.run();
  }).join();
  EXPECT_EQ(comparison.samples, 200u);
  EXPECT_EQ(comparison.equal, comparison.samples) << comparison.first_difference;
  EXPECT_GT(comparison.deepest, 20u);
}

TEST_F(Places, AStackThatAThreadBroughtAlongIsKnown) {
  std::vector<char> memory(1 << 20);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory.data(), memory.size());
  pthread_t thread;
  static StackRange range;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  range = own_stack(std::bit_cast<std::uint64_t>(__builtin_frame_address(0)));
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_GE(range.low, std::bit_cast<std::uint64_t>(memory.data()));
  EXPECT_EQ(range.high, std::bit_cast<std::uint64_t>(memory.data() + memory.size()));
}

TEST_F(Places, ACallThroughANullPointerShowsItsCaller) {
  const Handler handler(SIGSEGV, [](int, siginfo_t*, void* data) {
    walk_in_handler(0, nullptr, data);
    testing::return_from_call(*static_cast<ucontext_t*>(data));
  });
  static void (*volatile null_function)() = nullptr;
  call_at_depth(5, [] {
    null_function();
    asm volatile("");
  });
  EXPECT_EQ(g_walked.result.stop, StopReason::kEndOfStack);
  EXPECT_EQ(g_walked.result.method, Method::kMixed);
  EXPECT_EQ(g_walked.frames[0], 0u);
  EXPECT_TRUE(g_walked.passes(std::bit_cast<void*>(&call_at_depth), 400));
}

class Plugin {
 public:
  explicit Plugin(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  ~Plugin() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  void* find(const char* name) const { return dlsym(handle_, name); }
  void call_back(void (*function)(void*), void* data) const {
    std::bit_cast<int (*)(void (*)(void*), void*)>(find("plugin_call"))(function, data);
  }
  bool is_open() const { return handle_ != nullptr; }

 private:
  void* handle_;
};

Walked walk_through(const Plugin& plugin) {
  Walked walked;
  plugin.call_back(
      [](void* data) {
        auto& out = *static_cast<Walked*>(data);
        out.result = unwind_here(out.frames, g_options);
      },
      &walked);
  return walked;
}

TEST_F(Places, ALibraryLoadedAfterThePreparationIsWalked) {
  const Plugin plugin(DIAL9_PLUGIN_A);
  ASSERT_TRUE(plugin.is_open()) << dlerror();
  const Walked walked = walk_through(plugin);
  expect_whole(walked);
  EXPECT_TRUE(walked.passes(plugin.find("plugin_call"), 100));
}

void expect_replacement_is_walked() {
#if defined(DIAL9_EMULATED)
  GTEST_SKIP() << "qemu gives each library a place of its own";
#endif
  void* place = nullptr;
  {
    const Plugin first(DIAL9_PLUGIN_A);
    ASSERT_TRUE(first.is_open()) << dlerror();
    place = first.find("plugin_call");
    const Walked walked = walk_through(first);
    EXPECT_EQ(walked.result.stop, StopReason::kEndOfStack);
  }
  const Plugin second(DIAL9_PLUGIN_B);
  ASSERT_TRUE(second.is_open()) << dlerror();
  ASSERT_EQ(second.find("plugin_call"), place) << "the second library should replace the first";
  const Walked walked = walk_through(second);
  EXPECT_EQ(walked.result.stop, StopReason::kEndOfStack);
  EXPECT_EQ(walked.result.method, Method::kTables);
  EXPECT_TRUE(walked.passes(place, 100));
}

TEST_F(Places, ALibraryThatTakesAnothersPlaceIsNotTakenForIt) { expect_replacement_is_walked(); }

TEST_F(Places, APreparedLibraryThatIsReplacedIsNotTakenForItsSuccessor) {
  {
    const Plugin known(DIAL9_PLUGIN_A);
    prepare();
  }
  expect_replacement_is_walked();
}

TEST_F(Places, WithoutDlFindObjectANewLibraryIsWalkedFromTheNextPreparationOn) {
  use_dl_find_object(false);
  {
    const Plugin plugin(DIAL9_PLUGIN_A);
    EXPECT_EQ(walk_through(plugin).result.method, Method::kMixed);
    g_options.strategy = Strategy::kTables;
    EXPECT_EQ(walk_through(plugin).result.stop, StopReason::kNoTable);
    prepare();
    expect_whole(walk_through(plugin));
  }
  use_dl_find_object(true);
}

TEST_F(Places, AnUnloadedLibrarysAddressHasNoTableAndDoesNotFault) {
  std::uint64_t pc = 0;
  {
    const Plugin plugin(DIAL9_PLUGIN_A);
    prepare();
    pc = std::bit_cast<std::uint64_t>(plugin.find("plugin_call"));
  }
  for (const bool allowed : {true, false}) {
    use_dl_find_object(allowed);
    std::array<std::uint64_t, 8> frames{};
    const Result result =
        unwind_copy({.pc = pc, .sp = 4096, .fp = 0, .address = 4096, .bytes = {}}, frames);
    EXPECT_EQ(result.count, 1u);
    EXPECT_TRUE(result.truncated());
  }
  use_dl_find_object(true);
}

}  // namespace
}  // namespace dial9::unwind
