// Crashes on stacks of all kinds: overflown, alternate and small, somebody else's.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "dial9/crash.h"
#include "dial9/runtime.h"
#include "sources/crash_handler.h"
#include "sources/testing/crashing_child.h"
#include "sources/testing/signal_frame.h"

namespace dial9::internal {
namespace {

using testing::crash;
using testing::Ended;
using testing::forbidden_page;
using testing::overflow_stack;
using testing::run_child;
using testing::touch;

DIAL9_EVENT(Reached, (std::uint64_t, number));

class CrashPlaces : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_ADDRESS)
    GTEST_SKIP() << "ASan's frames are far larger than the stacks of these tests";
#endif
  }
};

void on_small_thread(void* (*function)(void*)) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread{};
  ::pthread_create(&thread, &attributes, function, nullptr);
  ::pthread_join(thread, nullptr);
}

TEST_F(CrashPlaces, AnOverflownStackOfTheThreadThatInstalledTheHandler) {
  const Ended ended = crash([] {
    record(Reached{1});
    overflow_stack(0);
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.number("CrashEvent", "signal"), static_cast<std::uint64_t>(SIGSEGV));
  EXPECT_EQ(ended.callchain().size(), kCrashFrames);
  EXPECT_EQ(ended.number("CrashEvent", "truncated"), 1U);
}

TEST_F(CrashPlaces, AnOverflownStackOfAThreadThatAskedForAnAlternateOne) {
  const Ended ended = crash([] {
    on_small_thread([](void*) -> void* {
      if (!add_crash_stack()) ::_exit(1);
      overflow_stack(0);
      return nullptr;
    });
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST_F(CrashPlaces, AnOverflownStackOfAWorkerOfARuntime) {
  const Ended ended = crash([] {
    static const runtime::RuntimeId pool = runtime::register_runtime("pool");
    on_small_thread([](void*) -> void* {
      runtime::enter_worker(pool);
      overflow_stack(0);
      return nullptr;
    });
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST_F(CrashPlaces, AnOverflownStackOfAnyOtherThreadKeepsWhatWasRecordedBefore) {
  const Ended ended = crash([] {
    on_small_thread([](void*) -> void* {
      record(Reached{5});
      overflow_stack(0);
      return nullptr;
    });
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.number("Reached", "number"), 5U);
  EXPECT_EQ(ended.count("CrashEvent"), 0U) << "nowhere to run a handler: the kernel ends it";
}

// An alternate stack of the host's own, with `bytes` below the kernel's signal frame.
void set_own_signal_stack(std::size_t bytes) {
  stack_t stack{};
  stack.ss_size = testing::signal_frame_bytes() + bytes;
  stack.ss_sp =
      ::mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (::sigaltstack(&stack, nullptr) != 0) ::_exit(103);
}

TEST_F(CrashPlaces, ASmallSignalStackOfTheHostsOwnIsEnough) {
  const Ended ended = run_child(
      {[] { set_own_signal_stack(8 << 10); }, [] { testing::call_touch(forbidden_page()); }});
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_TRUE(testing::passes(ended.callchain(), testing::call_touch));
  EXPECT_EQ(ended.number("CrashEvent", "truncated"), 0U);
}

TEST_F(CrashPlaces, AVerySmallSignalStackGetsTheInstructionAlone) {
  const Ended ended = run_child(
      {[] { set_own_signal_stack(5 << 10); }, [] { testing::call_touch(forbidden_page()); }});
  EXPECT_EQ(ended.signal(), SIGSEGV);
  ASSERT_EQ(ended.callchain().size(), 1U);
  EXPECT_TRUE(testing::passes(ended.callchain(), touch));
  EXPECT_EQ(ended.number("CrashEvent", "truncated"), 1U) << "and it says so";
}

TEST_F(CrashPlaces, ASignalStackOfTheHostsOwnIsNeverReplaced) {
  const Ended ended = run_child({[] { set_own_signal_stack(32 << 10); },
                                 [] {
                                   stack_t before{};
                                   ::sigaltstack(nullptr, &before);
                                   if (!add_crash_stack()) ::_exit(1);
                                   stack_t after{};
                                   ::sigaltstack(nullptr, &after);
                                   ::_exit(before.ss_sp == after.ss_sp ? 42 : 2);
                                 }});
  EXPECT_EQ(ended.exit_code(), 42);
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

TEST_F(CrashPlaces, SignalStacksGoWithTheirThreads) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer keeps mappings of its own for threads that are gone";
#endif
  const auto use = [] { std::thread([] { ASSERT_TRUE(add_crash_stack().ok()); }).join(); };
  use();
  const std::size_t before = mappings();
  for (int i = 0; i < 200; ++i) use();
  EXPECT_LE(mappings(), before + 4);
}

}  // namespace
}  // namespace dial9::internal
