// A process that samples itself, and what `dial9 flame` says of its trace: names and shares of its
// own functions, of libraries that came and went, and a binary that isn't the one that ran.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"
#include "dial9/cpu_samples.h"
#include "dial9/label.h"
#include "dial9/recorder.h"

namespace dial9::cli {
namespace {

using nlohmann::json;

constexpr std::uint32_t kHz = 200;

volatile std::uint64_t g_kept = 1;

std::uint64_t cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

[[gnu::noinline]] void grind_coffee(std::uint64_t ms) {
  for (const std::uint64_t end = cpu_ms() + ms; cpu_ms() < end;) {
    for (int i = 0; i < 2'000; ++i) g_kept = g_kept * 3 + 1;
  }
  g_kept = g_kept + 1;
}
[[gnu::noinline]] void steam_milk(std::uint64_t ms) {
  for (const std::uint64_t end = cpu_ms() + ms; cpu_ms() < end;) {
    for (int i = 0; i < 2'000; ++i) g_kept = g_kept * 5 + 1;
  }
  g_kept = g_kept ^ 1;
}

class FlameVerb : public testing::CliTest {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "ThreadSanitizer holds signals back until the thread calls it";
#endif
    const Status added = add_cpu_samples({.frequency_hz = kHz});
    ASSERT_TRUE(added.ok()) << added.message();
    auto [recorder, status] = Recorder::start(RecorderOptions::memory(16 << 20));
    ASSERT_TRUE(status.ok()) << status.message();
    recorder_.emplace(std::move(recorder));
    while (cpu_sample_status().samples == 0) {
      steam_milk(5);
      recorder_->rotate(std::chrono::seconds(30));
    }
  }
  void TearDown() override {
    recorder_.reset();
    remove_cpu_samples();
  }

  void dump() {
    ASSERT_TRUE(recorder_->rotate(std::chrono::seconds(30)));
    ASSERT_TRUE(recorder_->dump(path("trace.bin")).ok());
  }
  // Its output; the exit code is checked.
  std::string flame(const std::string& arguments, int exit_code = kOk) const {
    return output_of("flame '" + path("trace.bin") + "' " + arguments, exit_code);
  }
  // Milliseconds of the functions that have `part` in their names.
  static double total_ms(const json& found, const std::string& part) {
    double total = 0;
    for (const json& one : found["functions"]) {
      if (one["name"].get<std::string>().find(part) != std::string::npos) {
        total += one["total"].get<double>() / 1e6;
      }
    }
    return total;
  }

  std::optional<Recorder> recorder_;
};

TEST_F(FlameVerb, GivesTheSharesOfTheCpuTimeByFunction) {
  {
    const label scope("drink", "espresso");
    grind_coffee(1'200);
  }
  {
    const label scope("drink", "latte");
    steam_milk(400);
  }
  dump();
  const json found = json::parse(flame("--json --label drink"));
  EXPECT_EQ(found["unit"], "ns");
  const double total = found["total"].get<double>() / 1e6;
  EXPECT_NEAR(total, 1'600, 80) << "within 5 %";
  // On a crowded CPU a sample stands for several periods, and lies where the last of them ended.
  const double coarse_ms = total / found["count"].get<double>() - 1e3 / kHz;
  const double slack = 0.03 + 8 * std::max(coarse_ms, 0.0) / total;
  EXPECT_NEAR(total_ms(found, "grind_coffee") / total, 0.75, slack);
  EXPECT_NEAR(total_ms(found, "steam_milk") / total, 0.25, slack);
  double self = 0;
  for (const json& one : found["functions"]) self += one["self"].get<double>();
  EXPECT_NEAR(self / 1e6, total, 0.001) << "each sample is of one function";
  EXPECT_EQ(found["nodes"][0]["total"], found["total"]);
  EXPECT_NE(flame("--json --label drink=latte").find("steam_milk"), std::string::npos);
  EXPECT_EQ(flame("--json --label drink=latte").find("grind_coffee"), std::string::npos);
}

TEST_F(FlameVerb, WritesTextFoldedStacksAndAPicture) {
  grind_coffee(200);
  dump();
  const std::string text = flame("");
  EXPECT_NE(text.find("CPU time: "), std::string::npos) << text;
  EXPECT_NE(text.find("grind_coffee"), std::string::npos) << text;
  EXPECT_NE(flame("--format folded").find("grind_coffee(unsigned long)"), std::string::npos);
  EXPECT_EQ(flame("--format folded --label drink=tea"), "");
  EXPECT_NE(read("err").find("none of the"), std::string::npos) << read("err");
  EXPECT_NE(flame("--format svg").find("grind_coffee"), std::string::npos);
  const json inverted = json::parse(flame("--format json --inverted"));
  EXPECT_EQ(inverted["inverted"], true);
  flame("--task x", 2);
  flame("--format png", 2);
}

TEST_F(FlameVerb, DoesNotUseABinaryWithAnotherBuildIdAndNamesIt) {
  grind_coffee(200);
  dump();
  // Another program by the name of this one, where it is looked for first.
  std::filesystem::create_directory(path("symbols"));
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  std::filesystem::copy_file(DIAL9_CLI, path("symbols/") + self.filename().string());
  const std::string text = flame("--symbol-path '" + path("symbols") + "'");
  EXPECT_NE(text.find("not used"), std::string::npos) << text;
  EXPECT_NE(text.find("grind_coffee"), std::string::npos) << "from the right one\n" << text;
}

using Burn = std::uint64_t (*)(std::uint64_t);

constexpr std::uint64_t kBurnMs = 1'000;

// Loads the library, burns CPU time in it under a label, and unloads it. Its address.
std::uintptr_t burn_in(const char* library, const std::string& name) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  if (handle == nullptr) return 0;
  const auto burn = reinterpret_cast<Burn>(::dlsym(handle, "plugin_burn"));
  {
    const label scope("plugin", name);
    burn(kBurnMs);
  }
  ::dlclose(handle);
  return reinterpret_cast<std::uintptr_t>(burn);
}

TEST_F(FlameVerb, NamesTheLibraryThatWasThereWhenAnotherTakesItsPlace) {
  const std::uintptr_t first = burn_in(DIAL9_PLUGIN_ONE, "one");
  const std::uintptr_t second = burn_in(DIAL9_PLUGIN_TWO, "two");
  dump();
  const json one = json::parse(flame("--json --label plugin=one"));
  const json two = json::parse(flame("--json --label plugin=two"));
  // What runs before the collector has seen the change has no name: it sleeps for 250 ms where
  // nothing is recorded, looks 100 ms apart, and may come late.
  constexpr double kUnseenMs = 450;
  EXPECT_GT(total_ms(one, "burn_in_one"), kBurnMs - kUnseenMs) << one.dump(1);
  EXPECT_GT(total_ms(two, "burn_in_two"), kBurnMs - kUnseenMs) << two.dump(1);
  EXPECT_EQ(total_ms(one, "burn_in_two"), 0);
  EXPECT_EQ(total_ms(two, "burn_in_one"), 0);
  if (first != second) GTEST_SKIP() << "the second library wasn't put in the first one's place";
}

TEST_F(FlameVerb, ShowsInlinedFunctionsAsFramesOfTheirOwnAndTheirLines) {
  burn_in(DIAL9_PLUGIN_ONE, "one");
  dump();
  const json found = json::parse(flame("--json --label plugin=one"));
  for (const json& note : found["notes"]) {
    if (note.get<std::string>().find("built without libdw") != std::string::npos) {
      GTEST_SKIP() << note;
    }
  }
  const json* inlined = nullptr;
  for (const json& one : found["functions"]) {
    if (one["name"].get<std::string>().find("burn_a_little") == 0) inlined = &one;
  }
  ASSERT_NE(inlined, nullptr) << found.dump(1);
  EXPECT_EQ((*inlined)["inlined"], (*inlined)["total"]);
  EXPECT_TRUE((*inlined)["file"].get<std::string>().ends_with("/testing/burning_plugin.cc"));
  EXPECT_GT((*inlined)["line"], 0);
  const std::string text = flame("--lines --label plugin=one");
  // Compilers differ in whether they name an inlined function with its arguments.
  const std::regex row(R"(burn_a_little(\(.*\))? \(burning_plugin\.cc:\d+\) .*\(inlined\)\n)");
  EXPECT_TRUE(std::regex_search(text, row)) << text;
  // Once more, of what was kept on disk, and without.
  EXPECT_EQ(flame("--lines --label plugin=one"), text);
  EXPECT_EQ(flame("--lines --label plugin=one --no-symbol-cache"), text);
}

TEST_F(FlameVerb, SaysThatNoServerIsNamedWhereDebuginfodIsAsked) {
  grind_coffee(20);
  dump();
  ::unsetenv("DEBUGINFOD_URLS");
  EXPECT_NE(flame("--debuginfod").find("--debuginfod: nobody is asked"), std::string::npos);
  EXPECT_EQ(flame("").find("nobody is asked"), std::string::npos);
}

class KernelFlame : public testing::CliTest {
 protected:
  void TearDown() override { remove_cpu_samples(); }
};

// Of the caller, as the kernel counts it.
double kernel_cpu_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_stime.tv_sec) * 1e3 +
         static_cast<double>(usage.ru_stime.tv_usec) / 1e3;
}

TEST_F(KernelFlame, NamesWhereTheKernelSpentTheTimeOfACall) {
  const Status added = add_cpu_samples({.frequency_hz = kHz, .backend = CpuSampleBackend::kPerf});
  if (!added.ok()) GTEST_SKIP() << added.message();
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(16 << 20));
  ASSERT_TRUE(status.ok()) << status.message();
  recorder.rotate(std::chrono::seconds(30));
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(zeros, 0);
  std::vector<char> bytes(1 << 20);
  const double before_ms = kernel_cpu_ms();
  for (const std::uint64_t end = cpu_ms() + 500; cpu_ms() < end;) {
    ASSERT_GT(::read(zeros, bytes.data(), bytes.size()), 0);
  }
  const double spent_ms = kernel_cpu_ms() - before_ms;  // a sanitizer spends more outside
  ::close(zeros);
  ASSERT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  ASSERT_TRUE(recorder.dump(path("trace.bin")).ok());
  const json found = json::parse(output_of("flame --json '" + path("trace.bin") + "'"));
  double kernel_ms = 0;
  bool has_read = false;
  for (const json& one : found["functions"]) {
    if (one["module"] != "kernel") continue;
    kernel_ms += one["self"].get<double>() / 1e6;
    has_read = has_read || one["name"].get<std::string>().find("read") != std::string::npos;
  }
  if (kernel_ms == 0) GTEST_SKIP() << "no samples in the kernel here: " << found["notes"].dump();
  EXPECT_GT(kernel_ms, spent_ms / 2);
  const std::string notes = found["notes"].dump();
  if (notes.find("of the kernel have no names") != std::string::npos) GTEST_SKIP() << notes;
  EXPECT_TRUE(has_read) << found.dump(1);
}

}  // namespace
}  // namespace dial9::cli
