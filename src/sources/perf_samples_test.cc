// Injected CPU time comes back through perf events: by thread and function, in the kernel where
// that is allowed, and said to be missing where not; with perf denied; with little room.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "dial9/runtime.h"
#include "recorder/recording_state.h"
#include "sources/perf_event.h"
#include "sources/testing/in_child.h"
#include "sources/testing/sampled.h"

namespace dial9::internal {
namespace {

using namespace testing;

constexpr std::uint32_t kHz = 500;
constexpr std::uint64_t kKernelBegin = std::uint64_t{1} << 63;

CpuSampleOptions with_perf(std::uint32_t hz = kHz) {
  return {.frequency_hz = hz, .backend = CpuSampleBackend::kPerf};
}

double expected(std::uint64_t ms) { return static_cast<double>(ms) * kHz / 1'000; }

// Spends `ms` of CPU time, nearly all of it in the kernel.
void burn_in_kernel(std::uint64_t ms) {
  static std::vector<char> buffer(std::size_t{1} << 20);
  const int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const std::uint64_t end_ns = thread_cpu_ns() + ms * kTestMs;
  while (thread_cpu_ns() < end_ns) {
    for (int i = 0; i < 4; ++i) (void)!::read(zero, buffer.data(), buffer.size());
  }
  ::close(zero);
}

bool is_in_kernel(const SampleRow& row) {
  return !row.frames.empty() && row.frames.front() >= kKernelBegin;
}

class PerfSamples : public ::testing::Test {
 protected:
  void SetUp() override {
    const PerfProbe probe = probe_perf(1'000'000);
    if (!probe.refusal.empty()) GTEST_SKIP() << probe.refusal;
    has_kernel = probe.plan.has_kernel;
  }
  bool has_kernel = false;
};

TEST_F(PerfSamples, AThreadsCpuTimeComesBackAsPeriods) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  const std::uint32_t own = this_tid();
  const std::uint64_t from = now_ns();
  burn_one(1'000);
  const std::uint64_t to = now_ns();
  const auto rows = sampled.finish();
  const std::uint64_t count = periods(rows, [&](const SampleRow& row) {
    return row.tid == own && row.at_ns >= from && row.at_ns < to;
  });
  const double coarse = static_cast<double>(grain(rows) - 1);
  EXPECT_NEAR(static_cast<double>(count), expected(1'000), 0.02 * expected(1'000) + 2 * coarse);
  EXPECT_EQ(cpu_sample_status().lost, 0U);
}

TEST_F(PerfSamples, FunctionsHaveTheSharesOfTheTimeSpentInThem) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  const std::uint64_t from = now_ns();
  for (int i = 0; i < 3; ++i) {
    burn_one(300);
    burn_other(100);
  }
  const std::uint64_t to = now_ns();
  const auto rows = sampled.finish();
  const double coarse = static_cast<double>(grain(rows) - 1);
  const auto in = [&](void (*function)(std::uint64_t)) {
    return static_cast<double>(periods(rows, [&](const SampleRow& row) {
      return row.at_ns >= from && row.at_ns < to && passes(row.frames, function);
    }));
  };
  EXPECT_NEAR(in(burn_one), expected(900), 0.02 * expected(900) + 6 * coarse);
  EXPECT_NEAR(in(burn_other), expected(300), 0.03 * expected(300) + 6 * coarse);
}

TEST_F(PerfSamples, ThreadsThatNobodyRegisteredHaveTheirSharesAndNames) {
  Sampled sampled(with_perf());
  const Burnt burnt = burn_on_threads(sampled);
  const double coarse = static_cast<double>(grain(burnt.all) - 1);
  std::map<std::string, double> found;
  for (const SampleRow& row : burnt.rows) {
    found[row.thread_name] += static_cast<double>(row.weight);
    EXPECT_TRUE(row.has_cpu);
  }
  EXPECT_NEAR(found["burns-600"], expected(600), 0.03 * expected(600) + 2 * coarse);
  EXPECT_NEAR(found["burns-300"], expected(300), 0.03 * expected(300) + 2 * coarse + 1);
  EXPECT_NEAR(found["burns-100"], expected(100), 0.03 * expected(100) + 2 * coarse + 1);
}

TEST_F(PerfSamples, HaveWholeStacksFoundByUnwindTables) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  burn_one(400);
  std::uint64_t count = 0;
  std::uint64_t truncated = 0;
  for (const SampleRow& row : sampled.finish()) {
    if (!passes(row.frames, burn_one)) continue;
    count += row.weight;
    truncated += row.is_truncated ? row.weight : 0;
    EXPECT_EQ(row.unwound_by, "tables");
    EXPECT_GT(row.frames.size(), 5U);
  }
  EXPECT_GT(count, 100U);
  EXPECT_LE(truncated, count / 50) << "of " << count;
}

[[gnu::noinline]] void burn_below_much_stack(std::uint64_t ms) {
  char room[2 * kPerfStackBytes];
  asm volatile("" : : "r"(room) : "memory");  // no compiler may shrink it
  burn_other(ms);
  asm volatile("" : : "r"(room) : "memory");
}

TEST_F(PerfSamples, AStackThatTheCopyDoesNotHoldIsMarkedAsTruncated) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "a sanitizer's frames have sizes of their own";
#endif
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  const std::uint64_t from = now_ns();
  burn_below_much_stack(300);
  const std::uint64_t to = now_ns();
  std::uint64_t count = 0;
  for (const SampleRow& row : sampled.finish()) {
    if (row.at_ns < from || row.at_ns >= to || !passes(row.frames, burn_other)) continue;
    ++count;
    EXPECT_TRUE(row.is_truncated);
  }
  EXPECT_GT(count, 50U);
}

// What a thread works for is known on the thread alone, at that moment.
TEST_F(PerfSamples, DoNotClaimATaskASpanOrALabel) {
  static runtime::Place place{"sampled task"};
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  const runtime::RuntimeId runtime = runtime::register_runtime("sampled");
  const runtime::TaskId task = runtime::task_spawn(place, runtime);
  {
    const runtime::PollScope poll(runtime, {task, &place});
    const label scope("tenant", "acme");
    burn_one(200);
  }
  const auto rows = sampled.finish();
  EXPECT_GT(rows.size(), 50U);
  for (const SampleRow& row : rows) {
    EXPECT_FALSE(row.has_context);
    EXPECT_EQ(row.task, 0U);
    EXPECT_EQ(row.span, 0U);
    EXPECT_EQ(row.label, "");
  }
}

TEST_F(PerfSamples, TimeInTheKernelHasItsFramesAboveTheCallersStack) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan's own work around each call takes time outside the kernel";
#endif
  if (!has_kernel) GTEST_SKIP() << "samples in the kernel aren't allowed here";
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  const std::uint64_t from = now_ns();
  burn_in_kernel(400);
  const std::uint64_t to = now_ns();
  const Trace trace = sampled.read();
  const auto rows = samples_of(trace);
  const double coarse = static_cast<double>(grain(rows) - 1);
  const auto is_here = [&](const SampleRow& row) {
    return row.tid == this_tid() && row.at_ns >= from && row.at_ns < to;
  };
  const std::uint64_t all = periods(rows, is_here);
  EXPECT_NEAR(static_cast<double>(all), expected(400), 0.03 * expected(400) + 2 * coarse);
  const std::uint64_t in_kernel =
      periods(rows, [&](const SampleRow& row) { return is_here(row) && is_in_kernel(row); });
  EXPECT_GT(in_kernel, all * 8 / 10);
  std::uint64_t without_caller = 0;
  for (const SampleRow& row : rows) {
    if (is_here(row) && is_in_kernel(row) && row.frames.back() >= kKernelBegin) ++without_caller;
  }
  EXPECT_EQ(without_caller, 0U);
  EXPECT_EQ(trace.metadata("cpu.profile.event_source"), "perf cpu-clock, user and kernel");
  EXPECT_EQ(trace.metadata("cpu.profile.notice"), "(none)");
}

TEST_F(PerfSamples, SayInTheTraceWhatWasAskedAndWhatCameOfIt) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  burn_one(1'200);  // a window is a second
  burn_one(5);
  const Trace trace = sampled.read();
  EXPECT_EQ(trace.metadata("cpu.profile.backend"), "perf");
  EXPECT_EQ(trace.metadata("cpu.profile.frequency_hz"), "500");
  EXPECT_NE(trace.metadata("cpu.profile.achieved_hz"), "(none)");
  ASSERT_GE(trace.count("CpuProfileEvent"), 1U);
  EXPECT_EQ(trace.numbers("CpuProfileEvent", "asked_hz").at(0), 500U);
}

TEST_F(PerfSamples, AsNobodyTimeInTheKernelIsMissingAndTheTraceSaysSo) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork";
#endif
  if (::getuid() != 0) GTEST_SKIP() << "can't become nobody";
  if (probe_perf(1'000'000).plan.paranoid < 2) {
    GTEST_SKIP() << "kernel.perf_event_paranoid lets nobody sample the kernel here";
  }
  EXPECT_EQ(in_child([] {
              if (!become_nobody()) return 1;
              const PerfProbe probe = probe_perf(1'000'000);
              if (!probe.refusal.empty()) return 2;
              Sampled sampled(with_perf());
              sampled.wait_until_sampled();
              if (cpu_sample_status().message.find("perf_event_paranoid<=1") == std::string::npos) {
                return 3;
              }
              const std::uint64_t from = now_ns();
              burn_in_kernel(400);
              const std::uint64_t between = now_ns();
              burn_one(400);
              const Trace trace = sampled.read();
              if (trace.metadata("cpu.profile.notice").find("time in the kernel is missing") ==
                  std::string::npos) {
                return 4;
              }
              if (trace.metadata("cpu.profile.event_source") != "perf cpu-clock, user only")
                return 5;
              const auto rows = samples_of(trace);
              const auto sum = [&](std::uint64_t begin, std::uint64_t end) {
                return static_cast<double>(periods(rows, [&](const SampleRow& row) {
                  return row.at_ns >= begin && row.at_ns < end;
                }));
              };
              // Not charged to whatever runs in user mode next, which asks the kernel for its CPU
              // time now and then.
              if (sum(from, between) > 0.3 * expected(400)) return 6;
              if (sum(between, now_ns()) < 0.6 * expected(400)) return 7;
              if (sum(between, now_ns()) > 1.05 * expected(400)) return 8;
              for (const SampleRow& row : rows) {
                if (is_in_kernel(row)) return 9;
              }
              return 42;
            }),
            42);
}

class PerfDenied : public ::testing::TestWithParam<std::pair<int, const char*>> {};

TEST_P(PerfDenied, AForcedChoiceSaysWhyAndTheCureAndTheAutomaticOneGoesOnWithTimers) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer holds signals back, and starts no threads after a fork";
#endif
  const auto [error, name] = GetParam();
  std::string text(1'000, '\0');
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_EQ(in_child([&, number = error] {
              if (!deny_perf(number)) return 1;
              const Status status = add_cpu_samples(with_perf());
              (void)!::write(pipe[1], status.message().data(), status.message().size());
              if (status.ok() || cpu_sample_status().message.empty()) return 2;
              Sampled sampled;
              sampled.wait_until_sampled();
              const Trace trace = sampled.read();
              if (trace.metadata("cpu.profile.backend") != "ctimer") return 3;
              return trace.metadata("cpu.profile.start_error") == "(none)" ? 42 : 4;
            }),
            42);
  text.resize(static_cast<std::size_t>(::read(pipe[0], text.data(), text.size())));
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_NE(text.find("perf_event_open"), std::string::npos) << text;
  EXPECT_NE(text.find(name), std::string::npos) << text;
  EXPECT_NE(text.find("seccomp"), std::string::npos) << text;
  EXPECT_NE(text.find("CAP_PERFMON"), std::string::npos) << text;
  EXPECT_NE(text.find("timers of the threads need none of that"), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(EachErrno, PerfDenied,
                         ::testing::Values(std::pair(EPERM, "EPERM"), std::pair(ENOSYS, "ENOSYS"),
                                           std::pair(EACCES, "EACCES")),
                         [](const auto& test) { return test.param.second; });

}  // namespace
}  // namespace dial9::internal
