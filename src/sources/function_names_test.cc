// Which functions are named while they are loaded, in which segment, and what isn't asked.
// SPDX-License-Identifier: Apache-2.0
#include "sources/function_names.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/no_descriptors.h"
#include "dial9/cpu_samples.h"
#include "dial9/source.h"
#include "recorder/seen_code.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

[[gnu::noinline]] int first_named_function(int x) {
  volatile int y = x;
  return y + 1;
}
[[gnu::noinline]] int second_named_function(int x) {
  volatile int y = x;
  return y + 2;
}

std::uint64_t address_of(int (*function)(int)) {
  return reinterpret_cast<std::uintptr_t>(function);
}

// Sees frames on the thread of the test, as the collector would on its own.
class FunctionNamesTest : public ::testing::Test {
 protected:
  FunctionNamesTest() { (void)names_.attend(now_ns_); }
  ~FunctionNamesTest() override { want_seen_code(false); }

  // What is told of frames after enough steps for every table there is.
  std::vector<std::string> told(const std::vector<std::uint64_t>& frames,
                                FirstFrame first = FirstFrame::kInterrupted) {
    see_code(frames, first);
    std::vector<std::string> all = take();
    for (int step = 0; step < 2000; ++step) {
      now_ns_ = names_.attend(now_ns_);
      for (std::string& name : take()) all.push_back(std::move(name));
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<std::string> take() {
    std::vector<std::string> all;
    for (const SourceStream& stream : names_.take()) {
      const auto names = Trace::of(stream.bytes).texts("SymbolTableEntry", "symbol_name");
      EXPECT_EQ(stream.info.events, names.size());
      all.insert(all.end(), names.begin(), names.end());
    }
    return all;
  }

  FunctionNames names_{~std::uint64_t{0}};  // however slow a build with checks is
  std::uint64_t now_ns_ = 1'000;
};

const std::string kSpace = "dial9::internal::(anonymous namespace)::";

TEST_F(FunctionNamesTest, CodeThatASamplerSawHasItsFunctionsNameWithItsPlace) {
  const std::uint64_t at = address_of(first_named_function);
  see_code(std::vector<std::uint64_t>{at + 2}, FirstFrame::kInterrupted);
  std::vector<SourceStream> streams = names_.take();
  for (int step = 0; step < 2000 && streams.empty(); ++step) {
    now_ns_ = names_.attend(now_ns_);
    streams = names_.take();
  }
  ASSERT_EQ(streams.size(), 1U);
  const Trace trace = Trace::of(streams[0].bytes);
  EXPECT_EQ(trace.texts("SymbolTableEntry", "symbol_name"),
            std::vector<std::string>{kSpace + "first_named_function(int)"});
  EXPECT_EQ(trace.numbers("SymbolTableEntry", "addr"), std::vector<std::uint64_t>{at});
  EXPECT_GT(trace.numbers("SymbolTableEntry", "size").at(0), 2U);
  EXPECT_EQ(trace.numbers("SymbolTableEntry", "inline_depth"), std::vector<std::uint64_t>{0});
  EXPECT_EQ(trace.numbers("SymbolTableEntry", "source_line"), std::vector<std::uint64_t>{0});
  EXPECT_EQ(trace.stamps("SymbolTableEntry"), std::vector<std::uint64_t>{0});
  EXPECT_EQ(first_named_function(1), 2);
}

TEST_F(FunctionNamesTest, AFunctionIsNamedOnceASegmentHoweverOftenItIsSeen) {
  const std::vector<std::uint64_t> both = {address_of(first_named_function) + 2,
                                           address_of(second_named_function) + 2};
  EXPECT_EQ(told(both).size(), 2U);
  EXPECT_EQ(told(both).size(), 0U);
  EXPECT_TRUE(names_.opening().empty());
  EXPECT_EQ(told({both[1]}).size(), 1U) << "the next segment has those of its own samples";
  EXPECT_EQ(told(both).size(), 1U);
  EXPECT_EQ(second_named_function(1), 3);
}

TEST_F(FunctionNamesTest, AReturnAddressBehindAFunctionIsThatFunctions) {
  const std::uint64_t begin = address_of(first_named_function);
  const std::string name = kSpace + "first_named_function(int)";
  const std::vector<std::string> before = told({begin}, FirstFrame::kReturn);
  EXPECT_EQ(std::count(before.begin(), before.end(), name), 0);
  EXPECT_EQ(told({begin + 1}, FirstFrame::kReturn), std::vector<std::string>{name});
}

TEST_F(FunctionNamesTest, AnAddressOfNoFunctionIsAskedForOnceAndNamesNothing) {
  static int variable = 0;
  EXPECT_TRUE(told({reinterpret_cast<std::uintptr_t>(&variable), 0, ~std::uint64_t{0}}).empty());
}

TEST_F(FunctionNamesTest, ALibraryOfTheCLibrarysOwnIsNamedByItsTable) {
  const auto names = told({reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "qsort"))});
  ASSERT_EQ(names.size(), 1U);
  EXPECT_NE(names[0].find("qsort"), std::string::npos) << names[0];
}

// What may be unloaded may be another's code later, at the same addresses.
TEST_F(FunctionNamesTest, ALibraryThatMayBeUnloadedHasNoNames) {
  const std::unique_ptr<void, int (*)(void*)> plugin(
      ::dlopen(DIAL9_WAITING_PLUGIN, RTLD_NOW | RTLD_LOCAL), ::dlclose);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  void* const function = ::dlsym(plugin.get(), "waiting_plugin_value");
  ASSERT_NE(function, nullptr);
  EXPECT_TRUE(told({reinterpret_cast<std::uintptr_t>(function)}).empty());
}

TEST_F(FunctionNamesTest, WhatIsAskedForAsRecordingEndsIsStillTold) {
  see_code(std::vector<std::uint64_t>{address_of(first_named_function) + 2},
           FirstFrame::kInterrupted);
  names_.rest();
  EXPECT_EQ(take(), std::vector<std::string>{kSpace + "first_named_function(int)"});
  see_code(std::vector<std::uint64_t>{address_of(second_named_function) + 2},
           FirstFrame::kInterrupted);
  EXPECT_TRUE(take_seen_code().empty()) << "nothing is kept while nothing is recorded";
}

TEST(FunctionNames, AsRecordingEndsItTakesNoMoreTimeThanItHasAndSaysSo) {
  FunctionNames names(0);
  (void)names.attend(1'000);
  see_code(std::vector<std::uint64_t>{address_of(first_named_function) + 2},
           FirstFrame::kInterrupted);
  EXPECT_EQ(names.shortfall(), "");
  names.rest();
  EXPECT_TRUE(names.take().empty());
  EXPECT_NE(names.shortfall().find("recording ended"), std::string::npos) << names.shortfall();
}

// A CPU clock on which each look of the source takes as long as a test says.
std::uint64_t g_look_ns = 0;
std::uint64_t cpu_clock() {
  static std::uint64_t now_ns = 0;
  return now_ns += g_look_ns;
}

constexpr std::uint64_t kMs = 1'000'000;

TEST(FunctionNamesPace, ALookComesAHundredMsLaterOrFiveHundredTimesWhatItTook) {
  FunctionNames names(0, cpu_clock);
  std::uint64_t now_ns = 1'000;
  g_look_ns = kMs / 10;
  EXPECT_EQ(names.attend(now_ns), now_ns + 100 * kMs);
  now_ns += 100 * kMs;
  g_look_ns = 3 * kMs;
  EXPECT_EQ(names.attend(now_ns), now_ns + 1'500 * kMs);
  now_ns += 1'500 * kMs;
  names.set_budget({.max_cpu_ns = 1e6, .max_bytes = 0});  // a thousandth of a CPU
  EXPECT_EQ(names.attend(now_ns), now_ns + 30'000 * kMs) << "a tenth of the budget";
  now_ns += 30'000 * kMs;
  names.set_budget({.max_cpu_ns = 1e9, .max_bytes = 0});
  EXPECT_EQ(names.attend(now_ns), now_ns + 1'500 * kMs) << "never more than a 500th";
  want_seen_code(false);
}

TEST(FunctionNamesPace, BeforeItsTimeALookDoesNothing) {
  FunctionNames names(0, cpu_clock);
  g_look_ns = 3 * kMs;
  std::uint64_t now_ns = 1'000;
  const std::uint64_t due_ns = names.attend(now_ns);
  see_code(std::vector<std::uint64_t>{address_of(first_named_function) + 2},
           FirstFrame::kInterrupted);
  for (int i = 0; i < 2'000; ++i) {
    now_ns += 500'000;
    ASSERT_EQ(names.attend(now_ns), due_ns);
  }
  EXPECT_EQ(take_seen_code().size(), 1U) << "nobody asked what was seen";
  EXPECT_TRUE(names.take().empty());
  want_seen_code(false);
}

TEST_F(FunctionNamesTest, WhatIsAskedForWhileThereAreNoDescriptorsIsToldLater) {
  ASSERT_EQ(told({address_of(first_named_function) + 2}).size(), 1U);
  see_code(std::vector<std::uint64_t>{address_of(second_named_function) + 2},
           FirstFrame::kInterrupted);
  {
    const dial9::testing::NoDescriptors none;
    for (int step = 0; step < 5; ++step) now_ns_ = names_.attend(now_ns_);
  }
  EXPECT_EQ(told({}), std::vector<std::string>{kSpace + "second_named_function(int)"});
  EXPECT_EQ(names_.shortfall(), "");
}

TEST_F(FunctionNamesTest, WithoutDescriptorsForLongItGivesUpAndSaysSo) {
  ASSERT_EQ(told({address_of(first_named_function) + 2}).size(), 1U);
  see_code(std::vector<std::uint64_t>{address_of(second_named_function) + 2},
           FirstFrame::kInterrupted);
  {
    const dial9::testing::NoDescriptors none;
    for (std::uint32_t step = 0; step < 3 * FunctionNames::kMostFailedOpens; ++step) {
      now_ns_ = names_.attend(now_ns_);
    }
  }
  EXPECT_TRUE(told({}).empty());
  EXPECT_NE(names_.shortfall().find("no descriptor"), std::string::npos) << names_.shortfall();
}

TEST_F(FunctionNamesTest, TheChildOfAForkBeginsAnew) {
  see_code(std::vector<std::uint64_t>{address_of(first_named_function) + 2},
           FirstFrame::kInterrupted);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_empty = take_seen_code().empty();
    (void)names_.attend(now_ns_);
    see_code(std::vector<std::uint64_t>{address_of(second_named_function) + 2},
             FirstFrame::kInterrupted);
    ::_exit(is_empty && take_seen_code().size() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(FunctionNamesTest, NoDescriptorIsKept) {
  const auto open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open();
  see_code(std::vector<std::uint64_t>{address_of(first_named_function) + 2},
           FirstFrame::kInterrupted);
  for (int step = 0; step < 3; ++step) {
    now_ns_ = names_.attend(now_ns_);
    EXPECT_EQ(open(), before);
  }
}

TEST(FunctionNamesSource, ARecordingHasTheNamesOfItsSamples) {
  ASSERT_TRUE(add_function_names());
  ASSERT_TRUE(add_function_names()) << "a second time changes nothing";
  std::size_t samples = 0;
  std::size_t names = 0;
  // The end of each has time for one step at least, however slow the build is.
  for (int recording = 0; recording < 100 && names == 0; ++recording) {
    const TempDir dir;
    auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
    ASSERT_TRUE(status) << status.message();
    const Status sampling = add_cpu_samples();
    if (!sampling) GTEST_SKIP() << sampling.message();
    const std::uint64_t before = cpu_sample_status().samples;
    while (cpu_sample_status().samples == before) (void)first_named_function(1);
    recorder.stop(std::chrono::seconds(30));
    remove_cpu_samples();
    const auto runs = list_files(dir.path());
    ASSERT_EQ(runs.size(), 1U);
    const Trace trace = Trace::of_directory(dir.path() + "/" + runs[0]);
    samples += trace.count("CpuSampleEvent");
    names += trace.count("SymbolTableEntry");
  }
  EXPECT_GT(samples, 0U);
  EXPECT_GT(names, 0U);
}

}  // namespace
}  // namespace dial9::internal
