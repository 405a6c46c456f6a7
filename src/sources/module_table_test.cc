// Which modules the table tells of and when, and that nothing waits for the loader that mustn't.
// SPDX-License-Identifier: Apache-2.0
#include "sources/module_table.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "dial9/crash.h"
#include "dial9/internal/clock.h"
#include "recorder/test_support.h"
#include "unwind/loader_probe.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

class FakeReader final : public ModuleReader {
 public:
  bool can_read() override { return is_readable; }
  LoadCounts counts() override {
    ++looks;
    return loaded.counts;
  }
  LoadedModules modules() override {
    ++reads;
    time_ns += 5;  // it takes a while
    return loaded;
  }
  std::uint64_t now_ns() override { return time_ns; }

  void load(const std::string& path, std::uint64_t begin) {
    loaded.modules.push_back({path, "ab", begin, begin + 100, begin});
    ++loaded.counts.loads;
  }
  void unload() {
    loaded.modules.pop_back();
    ++loaded.counts.unloads;
  }

  LoadedModules loaded;
  std::uint64_t time_ns = 1'000;
  bool is_readable = true;
  int looks = 0;
  int reads = 0;
};

class FakeTable {
 public:
  // A pass of the collector, a second later.
  void pass() {
    reader.time_ns += 1'000;
    collector_ns += kTestSecond;
    table.attend(collector_ns);
  }
  Trace take() {
    std::vector<std::uint8_t> bytes;
    for (const SourceStream& stream : table.take()) {
      bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
    }
    return Trace::of(bytes);
  }

  FakeReader reader;
  ModuleTable table{reader};
  std::uint64_t collector_ns = 0;
};

using Numbers = std::vector<std::uint64_t>;
using Texts = std::vector<std::string>;

TEST(ModuleTable, TellsASetOnceAndNothingWhileNothingChanges) {
  FakeTable fake;
  fake.reader.load("/app", 1'000);
  fake.reader.load("/lib", 2'000);
  fake.pass();
  const Trace first = fake.take();
  EXPECT_EQ(first.texts("ModuleEvent", "path"), (Texts{"/app", "/lib"}));
  EXPECT_EQ(first.texts("ModuleEvent", "build_id"), (Texts{"ab", "ab"}));
  EXPECT_EQ(first.numbers("ModuleEvent", "bias"), (Numbers{1'000, 2'000}));
  EXPECT_EQ(first.numbers("ModuleEvent", "epoch"), (Numbers{1, 1}));
  EXPECT_EQ(first.numbers("ModuleEvent", "before_held_ns"), (Numbers{0, 0}));
  fake.pass();
  fake.pass();
  EXPECT_TRUE(fake.table.take().empty());
  EXPECT_EQ(fake.reader.reads, 1) << "counts that don't change cost no walk";
}

TEST(ModuleTable, SaysHowLongTheSetBeforeHeldForCertain) {
  FakeTable fake;
  fake.reader.load("/app", 1'000);
  fake.pass();  // reads until 2,005
  fake.pass();  // looks at 3,005
  fake.reader.load("/plugin", 5'000);
  fake.take();
  fake.pass();  // reads until 4,010
  const Trace second = fake.take();
  EXPECT_EQ(second.texts("ModuleEvent", "path"), (Texts{"/app", "/plugin"}));
  EXPECT_EQ(second.numbers("ModuleEvent", "before_held_ns"), (Numbers{3'005, 3'005}));
  EXPECT_EQ(second.numbers("ModuleEvent", "since_ns"), (Numbers{4'010, 4'010}));
  EXPECT_EQ(second.numbers("ModuleEvent", "epoch"), (Numbers{2, 2}));
  EXPECT_EQ(second.numbers("ModuleEvent", "only_added"), (Numbers{1, 1}));
  fake.reader.unload();
  fake.pass();
  EXPECT_EQ(fake.take().numbers("ModuleEvent", "only_added"), (Numbers{0}));
}

TEST(ModuleTable, TellsASetAnewThatCameBackToTheSameAfterUnloads) {
  FakeTable fake;
  fake.reader.load("/app", 1'000);
  fake.pass();
  fake.take();
  fake.reader.load("/plugin", 5'000);
  fake.reader.unload();
  fake.pass();
  EXPECT_EQ(fake.take().numbers("ModuleEvent", "only_added"), (Numbers{0}));
}

TEST(ModuleTable, BeginsEachSegmentWithTheSetAndItsOwnTimes) {
  FakeTable fake;
  EXPECT_TRUE(fake.table.opening().empty()) << "nothing is known yet";
  fake.reader.load("/app", 1'000);
  fake.pass();
  fake.reader.load("/plugin", 5'000);
  fake.pass();
  fake.pass();
  const Trace opening = Trace::of(fake.table.opening());
  EXPECT_EQ(opening.texts("ModuleEvent", "path"), (Texts{"/app", "/plugin"}));
  EXPECT_EQ(opening.numbers("ModuleEvent", "before_held_ns"), (Numbers{2'005, 2'005}));
  EXPECT_EQ(opening.numbers("ModuleEvent", "since_ns"), (Numbers{3'010, 3'010}));
  EXPECT_EQ(opening.stamps("ModuleEvent"), (Numbers{4'010, 4'010}))
      << "when it was seen last: not long before the segment";
}

TEST(ModuleTable, AsksNothingOfALoaderThatDoesNotAnswer) {
  FakeTable fake;
  fake.reader.load("/app", 1'000);
  fake.reader.is_readable = false;
  fake.pass();
  EXPECT_EQ(fake.reader.looks + fake.reader.reads, 0);
  EXPECT_TRUE(fake.table.take().empty());
}

const ModuleRecord* module_of(const LoadedModules& loaded, const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const ModuleRecord& module : loaded.modules) {
    if (at >= module.begin && at < module.end) return &module;
  }
  return nullptr;
}

TEST(LoadedModules, NamesTheProgramAndItsLibrariesWithTheirBuildIds) {
  const LoadedModules loaded = loaded_modules();
  const ModuleRecord* own = module_of(loaded, reinterpret_cast<const void*>(&module_of));
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->path, std::filesystem::read_symlink("/proc/self/exe"));
  const ModuleRecord* libc = module_of(loaded, dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  ASSERT_NE(libc, nullptr);
  EXPECT_NE(libc->path.find("libc"), std::string::npos);
  EXPECT_EQ(libc->build_id.size(), 40U);
  EXPECT_EQ(libc->begin, libc->bias);
  EXPECT_EQ(loaded.counts, load_counts());
}

struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};
using Plugin = std::unique_ptr<void, Close>;
Plugin open_plugin() { return Plugin(dlopen(DIAL9_WAITING_PLUGIN, RTLD_NOW | RTLD_LOCAL)); }

TEST(LoadedModules, SeesALibraryComeAndGo) {
  ::unsetenv("DIAL9_TEST_CALL");
  const LoadCounts before = load_counts();
  Plugin plugin = open_plugin();
  ASSERT_NE(plugin, nullptr) << dlerror();
  const void* symbol = dlsym(plugin.get(), "waiting_plugin_value");
  EXPECT_GT(load_counts().loads, before.loads);
  const LoadedModules with = loaded_modules();
  const ModuleRecord* module = module_of(with, symbol);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->path, DIAL9_WAITING_PLUGIN);
  EXPECT_FALSE(module->build_id.empty());
  plugin.reset();
  EXPECT_GT(load_counts().unloads, before.unloads);
  EXPECT_EQ(module_of(loaded_modules(), symbol), nullptr);
}

Recorder* g_recorder = nullptr;
int g_rotated = 0;

// What the plugin calls inside dlopen and dlclose: it waits for the collector, which has to look at
// the modules meanwhile.
void wait_for_the_collector() {
  const LoadCounts before = load_counts();
  g_rotated += g_recorder->rotate(std::chrono::seconds(30)) ? 1 : 0;
  EXPECT_EQ(load_counts(), before);
}

TEST(ModuleTable, LetsConstructorsInDlopenWaitForTheCollector) {
  ASSERT_TRUE(require_module_table());
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status.ok()) << status.message();
  g_recorder = &recorder;
  g_rotated = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(&wait_for_the_collector);
  ::setenv("DIAL9_TEST_CALL", std::to_string(address).c_str(), 1);
  Plugin plugin = open_plugin();
  ASSERT_NE(plugin, nullptr) << dlerror();
  plugin.reset();
  ::unsetenv("DIAL9_TEST_CALL");
  EXPECT_EQ(g_rotated, 2);
  recorder.stop();
}

TEST(ModuleTable, IsToldWhereCrashesAreRecordedAndNothingElse) {
  ASSERT_TRUE(install_crash_handler());
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status.ok()) << status.message();
  while (Trace::of(recorder.sealed_segments()).count("ModuleEvent") == 0) {
    ASSERT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  }
  recorder.stop(std::chrono::seconds(30));
}

std::atomic<bool> g_is_inside{false};
std::atomic<bool> g_may_leave{false};
int stay_inside(dl_phdr_info*, std::size_t, void*) {
  g_is_inside = true;
  g_is_inside.notify_all();
  g_may_leave.wait(false);
  return 1;
}

// The loader's lock has no owner in the child: whoever asks for it there hangs.
template <class Child>
int in_a_fork_with_the_loader_locked(Child child) {
  g_is_inside = g_may_leave = false;
  std::thread owner([] { ::dl_iterate_phdr(stay_inside, nullptr); });
  g_is_inside.wait(false);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);  // a hang ends here, by a signal
    ::_exit(child() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  g_may_leave = true;
  g_may_leave.notify_all();
  owner.join();
  return status;
}

TEST(LoaderProbe, AnswersInAProcessWhoseLoaderDoes) {
  EXPECT_TRUE(unwind::does_loader_answer());
  EXPECT_TRUE(unwind::does_loader_answer());
}

TEST(LoaderProbe, SaysNoInAChildWhoseLoadersLockHasNoOwner) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer lets no child of a threaded process make threads";
#endif
  EXPECT_EQ(in_a_fork_with_the_loader_locked([] {
              return !unwind::does_loader_answer() && !unwind::does_loader_answer() &&
                     unwind::prepare() == unwind::Prepared::kBusy;
            }),
            0);
}

TEST(ModuleTable, NeverHangsARecorderInAChildWhoseLoadersLockHasNoOwner) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer lets no child of a threaded process make threads";
#endif
  ASSERT_TRUE(require_module_table());
  EXPECT_EQ(in_a_fork_with_the_loader_locked([] {
              auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
              if (!status.ok()) return false;
              recorder.rotate(std::chrono::seconds(30));
              recorder.stop();
              return true;
            }),
            0);
}

}  // namespace
}  // namespace dial9::internal
