// Which module an address belongs to, while modules come and go, also under walks.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/modules.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "unwind/arch.h"
#include "unwind/process_memory.h"
#include "unwind/tables.h"
#include "unwind/testing/table_builder.h"
#include "unwind/unwind.h"

namespace dial9::unwind {
namespace {

std::optional<Module> module_of(const void* address) {
  ProcessTables tables(X86_64::kNumbers);
  return ModuleReader().find(std::bit_cast<std::uint64_t>(address), tables.source());
}

struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};
std::unique_ptr<void, Close> open_plugin(const char* path) {
  return std::unique_ptr<void, Close>(dlopen(path, RTLD_NOW | RTLD_LOCAL));
}

TEST(Modules, TheExecutableAndItsLibrariesStayForEver) {
  prepare();
  const std::array<const void*, 3> addresses{std::bit_cast<const void*>(&module_of),
                                             dlsym(RTLD_DEFAULT, "qsort"),
                                             dlsym(RTLD_DEFAULT, "__cxa_throw")};
  for (const void* const code : addresses) {
    const auto module = module_of(code);
    ASSERT_TRUE(module);
    EXPECT_EQ(module->stamp, 0u);
    EXPECT_GT(module->entry_count, 0u);
  }
}

TEST(Modules, ALibraryOpenedByTheProgramMayGo) {
  prepare();
  const auto plugin = open_plugin(DIAL9_PLUGIN_A);
  const void* const code = dlsym(plugin.get(), "plugin_call");
  const auto fresh = module_of(code);
  ASSERT_TRUE(fresh);
  EXPECT_NE(fresh->stamp, 0u);
  EXPECT_EQ(module_of(code)->stamp, fresh->stamp);
  prepare();
  const auto known = module_of(code);
  ASSERT_TRUE(known);
  EXPECT_NE(known->stamp, 0u);
  EXPECT_EQ(known->notes, fresh->notes);
  EXPECT_GT(known->notes_bytes, 0u);
}

TEST(Modules, AReplacementBearsAnotherStamp) {
#if defined(DIAL9_EMULATED)
  GTEST_SKIP() << "qemu gives each library a place of its own";
#endif
  prepare();
  std::uint64_t before = 0;
  const void* place = nullptr;
  {
    const auto plugin = open_plugin(DIAL9_PLUGIN_A);
    place = dlsym(plugin.get(), "plugin_call");
    before = module_of(place)->stamp;
  }
  const auto plugin = open_plugin(DIAL9_PLUGIN_B);
  ASSERT_EQ(dlsym(plugin.get(), "plugin_call"), place);
  EXPECT_NE(module_of(place)->stamp, before);
}

TEST(Modules, NoModuleIsAtTheHeapOrAtNull) {
  prepare();
  const auto heap = std::make_unique<int>(1);
  EXPECT_FALSE(module_of(heap.get()));
  EXPECT_FALSE(module_of(nullptr));
}

// A search table of `count` entries, each for 16 bytes of code behind it.
testing::BufferSource search_table(std::uint32_t count, std::uint64_t address) {
  std::vector<std::uint8_t> bytes{1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0};
  const auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  };
  put(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    put(0x100000 + 16 * i);
    put(12 + 4 * i);
  }
  return {address, std::move(bytes)};
}

TEST(Modules, EachEntryOfASearchTableIsFound) {
  constexpr std::uint64_t kAddress = 0x400000;
  for (const std::uint32_t count : {1u, 2u, 31u, 32u, 33u, 100u, 1000u}) {
    testing::BufferSource buffer = search_table(count, kAddress);
    TableSource source = buffer.source();
    const Module module{.begin = kAddress, .end = buffer.end(), .eh_frame_hdr = kAddress};
    const ModuleReader reader;
    TableError error = TableError::kNone;
    EXPECT_EQ(reader.find_entry(module, kAddress + 0xfffff, source, error), 0u);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t code = kAddress + 0x100000 + 16 * i;
      EXPECT_EQ(reader.find_entry(module, code, source, error), kAddress + 12 + 4 * i);
      EXPECT_EQ(reader.find_entry(module, code + 15, source, error), kAddress + 12 + 4 * i);
    }
    EXPECT_EQ(error, TableError::kNone);
  }
}

TEST(Modules, ASearchTableThatEndsEarlyIsUnreadable) {
  testing::BufferSource buffer = search_table(100, 0x400000);
  buffer.bytes().resize(200);
  TableSource source = buffer.source();
  const Module module{.begin = 0x400000, .end = 0x500000, .eh_frame_hdr = 0x400000};
  TableError error = TableError::kNone;
  EXPECT_EQ(ModuleReader().find_entry(module, 0x500200, source, error), 0u);
  EXPECT_EQ(error, TableError::kUnreadable);
}

TEST(Modules, AnEntryOutsideOfItsModuleIsCorrupt) {
  testing::BufferSource buffer = search_table(1, 0x400000);
  buffer.bytes()[19] = 0x7f;
  TableSource source = buffer.source();
  const Module module{.begin = 0x400000, .end = buffer.end(), .eh_frame_hdr = 0x400000};
  TableError error = TableError::kNone;
  EXPECT_EQ(ModuleReader().find_entry(module, 0x500000, source, error), 0u);
  EXPECT_EQ(error, TableError::kCorrupt);
}

TEST(Modules, TheTableIsReplacedWhileOthersLookUp) {
  prepare();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    const auto code = std::bit_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, "qsort"));
    while (!done) {
      ProcessTables tables(X86_64::kNumbers);
      FrameRules rules;
      EXPECT_TRUE(tables.rules(code, kNoRegister, rules));
    }
  });
  for (int i = 0; i < 100; ++i) {
    const auto plugin = open_plugin(i % 2 == 0 ? DIAL9_PLUGIN_A : DIAL9_PLUGIN_B);
    EXPECT_EQ(prepare(), Prepared::kDone);
  }
  done = true;
  reader.join();
}

std::atomic<std::uint32_t> g_samples{0};

void sample(int, siginfo_t*, void* context) {
  std::array<std::uint64_t, 256> frames;
  if (unwind(static_cast<const ucontext_t*>(context), frames).count > 0) {
    g_samples.fetch_add(1, std::memory_order_relaxed);
  }
}

// What deadlocks unwinders that call libgcc or the loader in a handler: sampling threads that
// throw, allocate and load, all at once. This test ends, or times out.
TEST(Modules, LoadingThrowingAndAllocatingUnderSamplesComesToItsEnd) {
  prepare();
  struct sigaction action{};
  struct sigaction before{};
  action.sa_sigaction = sample;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, &before);
  const auto sampled = [](auto work) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_t timer{};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    const itimerspec interval{{0, 500'000}, {0, 500'000}};
    timer_settime(timer, 0, &interval, nullptr);
    while (g_samples.load(std::memory_order_relaxed) < 1000) {
      work();
    }
    timer_delete(timer);
  };
  g_samples = 0;
  std::thread loader([&] { sampled([] { open_plugin(DIAL9_PLUGIN_A); }); });
  std::thread thrower([&] {
    sampled([] {
      try {
        throw std::runtime_error("as intended");
      } catch (const std::runtime_error&) {
        std::free(std::malloc(100));
      }
    });
  });
  std::thread preparer([&] { sampled([] { prepare(); }); });
  loader.join();
  thrower.join();
  preparer.join();
  action.sa_flags = 0;
  action.sa_handler = SIG_IGN;  // a last signal may still be on its way
  sigaction(SIGPROF, &action, nullptr);
  EXPECT_GE(g_samples.load(), 1000u);
}

}  // namespace
}  // namespace dial9::unwind
