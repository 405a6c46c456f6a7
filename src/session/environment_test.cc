// SPDX-License-Identifier: Apache-2.0
#include "session/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dial9::internal {
namespace {

bool mentions(const std::vector<std::string>& messages, const std::string& text) {
  return std::any_of(messages.begin(), messages.end(), [&](const std::string& message) {
    return message.find(text) != std::string::npos;
  });
}

TEST(Environment, HasTheDocumentedDefaults) {
  const EnvironmentPlan plan = plan_from({});
  EXPECT_FALSE(plan.is_enabled);
  EXPECT_EQ(plan.options.directory, "/tmp/dial9-traces");
  EXPECT_EQ(plan.options.rotation_period, std::chrono::seconds(60));
  EXPECT_EQ(plan.options.budget_bytes, std::uint64_t{1024} << 20);
  EXPECT_EQ(plan.options.segment_bytes, 0U) << "min(100 MiB, total / 4) is the recorder's default";
  EXPECT_TRUE(plan.options.removes_dead_runs);
  EXPECT_EQ(plan.process_usage_period, std::chrono::milliseconds(100));
  EXPECT_EQ(plan.sched_wait_sample_rate, 10U);
  EXPECT_TRUE(plan.messages.empty());
}

TEST(Environment, TakesEveryVariableOfThisVersion) {
  const EnvironmentPlan plan = plan_from({{"DIAL9_ENABLED", "yes"},
                                          {"DIAL9_TRACE_DIR", "/var/traces"},
                                          {"DIAL9_ROTATION_SECS", "5"},
                                          {"DIAL9_MAX_DISK_USAGE_MB", "64"},
                                          {"DIAL9_MAX_FILE_SIZE_MB", "8"},
                                          {"DIAL9_GC_DEAD_NAMESPACES", "off"},
                                          {"DIAL9_RUNTIME_NAME", "api"},
                                          {"DIAL9_SERVICE_NAME", "shop"},
                                          {"DIAL9_PROCESS_RESOURCE_USAGE_SAMPLE_INTERVAL_MS", "50"},
                                          {"DIAL9_SCHED_WAIT_SAMPLE_RATE", "3"},
                                          {"DIAL9_TASK_TRACKING_ENABLED", "1"},
                                          {"DIAL9_THREAD_BUFFER_KB", "128"},
                                          {"DIAL9_ARENA_MB", "32"},
                                          {"DIAL9_MAX_CPU_PERCENT", "2.5"},
                                          {"DIAL9_MAX_MB_PER_SEC", "10"},
                                          {"DIAL9_CLOCK", "kernel"},
                                          {"DIAL9_QUIET", "on"}});
  EXPECT_TRUE(plan.messages.empty()) << plan.messages.front();
  EXPECT_TRUE(plan.is_enabled);
  EXPECT_EQ(plan.options.directory, "/var/traces");
  EXPECT_EQ(plan.options.rotation_period, std::chrono::seconds(5));
  EXPECT_EQ(plan.options.budget_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(plan.options.segment_bytes, std::uint64_t{8} << 20);
  EXPECT_FALSE(plan.options.removes_dead_runs);
  EXPECT_EQ(plan.runtime_name, "api");
  EXPECT_EQ(plan.options.service_name, "shop");
  EXPECT_EQ(plan.process_usage_period, std::chrono::milliseconds(50));
  EXPECT_EQ(plan.sched_wait_sample_rate, 3U);
  EXPECT_EQ(plan.options.thread_bytes, 128U << 10);
  EXPECT_EQ(plan.options.arena_bytes, std::uint64_t{32} << 20);
  EXPECT_EQ(plan.options.max_cpu_percent, 2.5);
  EXPECT_EQ(plan.options.max_mb_per_sec, 10);
  EXPECT_EQ(plan.options.clock, ClockChoice::kKernel);
  EXPECT_TRUE(plan.is_quiet);
}

TEST(Environment, ReadsBooleansInEverySpelling) {
  for (const char* yes : {"t", "true", "1", "y", "yes", "on", "TRUE", "On"}) {
    EXPECT_TRUE(plan_from({{"DIAL9_ENABLED", yes}}).is_enabled) << yes;
  }
  for (const char* no : {"f", "false", "0", "n", "no", "off", "FALSE"}) {
    const EnvironmentPlan plan = plan_from({{"DIAL9_ENABLED", no}});
    EXPECT_FALSE(plan.is_enabled) << no;
    EXPECT_TRUE(plan.messages.empty()) << no;
  }
}

TEST(Environment, NamesEveryValueThatItDoesNotUnderstandAndTakesItAsMissing) {
  const std::pair<const char*, const char*> bad[] = {
      {"DIAL9_ENABLED", "maybe"},
      {"DIAL9_ROTATION_SECS", "-1"},
      {"DIAL9_ROTATION_SECS", "nan"},
      {"DIAL9_ROTATION_SECS", "1e9"},
      {"DIAL9_MAX_DISK_USAGE_MB", "0"},
      {"DIAL9_MAX_DISK_USAGE_MB", "12 MB"},
      {"DIAL9_MAX_FILE_SIZE_MB", "600"},
      {"DIAL9_TRACE_DIR", ""},
      {"DIAL9_CLOCK", "hpet"},
      {"DIAL9_SCHED_WAIT_SAMPLE_RATE", "0"},
      {"DIAL9_ARENA_MB", "99999999999999"},
      {"DIAL9_CPU_PROFILE_ENABLED", "2"},
  };
  for (const auto& [name, value] : bad) {
    const EnvironmentPlan plan = plan_from({{name, value}});
    EXPECT_TRUE(mentions(plan.messages, std::string(name) + "='" + value + "'")) << name;
    EXPECT_EQ(plan.options.rotation_period, std::chrono::seconds(60));
    EXPECT_EQ(plan.options.budget_bytes, std::uint64_t{1024} << 20);
    EXPECT_EQ(plan.options.directory, "/tmp/dial9-traces");
  }
}

TEST(Environment, ReportsAnUnknownVariable) {
  const EnvironmentPlan plan = plan_from({{"DIAL9_FOO", "1"}});
  EXPECT_TRUE(mentions(plan.messages, "DIAL9_FOO"));
}

TEST(Environment, SaysWhatWasAskedForAndIsNotBuiltIn) {
  for (const char* name : {"DIAL9_S3_BUCKET", "DIAL9_S3_PREFIX", "DIAL9_TASK_DUMP_ENABLED",
                           "DIAL9_TASK_DUMP_IDLE_THRESHOLD_MS"}) {
    const EnvironmentPlan plan = plan_from({{name, "1"}});
    ASSERT_EQ(plan.messages.size(), 1U) << name;
    EXPECT_TRUE(mentions(plan.messages, name));
    EXPECT_TRUE(mentions(plan.messages, "not built into this version")) << name;
  }
  EXPECT_TRUE(plan_from({{"DIAL9_MEMORY_PROFILE_ENABLED", "false"}}).messages.empty());
  EXPECT_FALSE(plan_from({{"DIAL9_TASK_TRACKING_ENABLED", "false"}}).messages.empty());
}

TEST(Environment, LooksForStallsOfThePlatformUnlessToldNotTo) {
  EXPECT_EQ(plan_from({{"DIAL9_ENABLED", "1"}}).platform_stalls_period,
            std::chrono::milliseconds(100));
  EXPECT_EQ(plan_from({{"DIAL9_PLATFORM_STALLS_SAMPLE_INTERVAL_MS", "250"}}).platform_stalls_period,
            std::chrono::milliseconds(250));
  EXPECT_EQ(plan_from({{"DIAL9_PLATFORM_STALLS_ENABLED", "off"}}).platform_stalls_period.count(),
            0);
}

TEST(Environment, RecordsResourcesEverySecondUnlessToldNotTo) {
  EXPECT_EQ(plan_from({{"DIAL9_ENABLED", "1"}}).resources_period, std::chrono::seconds(1));
  EXPECT_EQ(plan_from({{"DIAL9_RESOURCES_SAMPLE_INTERVAL_MS", "500"}}).resources_period,
            std::chrono::milliseconds(500));
  EXPECT_EQ(plan_from({{"DIAL9_RESOURCES_ENABLED", "off"}}).resources_period.count(), 0);
}

TEST(Environment, SamplesAcceptQueuesOnlyIfAskedTo) {
  EXPECT_EQ(plan_from({{"DIAL9_ENABLED", "1"}}).accept_queues_period.count(), 0);
  const char* const name = "DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED";
  EXPECT_EQ(plan_from({{name, "1"}}).accept_queues_period, std::chrono::milliseconds(400));
  EXPECT_EQ(plan_from({{name, "1"}, {"DIAL9_SOCKET_ACCEPT_QUEUES_SAMPLE_INTERVAL_MS", "100"}})
                .accept_queues_period,
            std::chrono::milliseconds(100));
}

TEST(Environment, SamplesTheHeapOnlyIfAskedToAndTracksWhatLivesOnlyIfAskedToAsWell) {
  EXPECT_EQ(plan_from({{"DIAL9_ENABLED", "1"}}).heap_sample_rate_bytes, 0U);
  const EnvironmentPlan plain = plan_from({{"DIAL9_MEMORY_PROFILE_ENABLED", "1"}});
  EXPECT_EQ(plain.heap_sample_rate_bytes, 524'288U);
  EXPECT_FALSE(plain.tracks_live_heap);
  const EnvironmentPlan full = plan_from({{"DIAL9_MEMORY_PROFILE_ENABLED", "1"},
                                          {"DIAL9_MEMORY_SAMPLE_RATE_BYTES", "1"},
                                          {"DIAL9_MEMORY_TRACK_LIVESET", "on"}});
  EXPECT_EQ(full.heap_sample_rate_bytes, 1U);
  EXPECT_TRUE(full.tracks_live_heap);
  EXPECT_TRUE(full.messages.empty());
  for (const char* name : {"DIAL9_MEMORY_SAMPLE_RATE_BYTES", "DIAL9_MEMORY_TRACK_LIVESET"}) {
    const EnvironmentPlan alone = plan_from({{name, "1"}});
    EXPECT_TRUE(mentions(alone.messages, std::string(name) + " has no effect without")) << name;
  }
}

TEST(Environment, KeepsASegmentWithinHalfOfASmallBudget) {
  const EnvironmentPlan plan =
      plan_from({{"DIAL9_MAX_DISK_USAGE_MB", "1"}, {"DIAL9_MAX_FILE_SIZE_MB", "1"}});
  EXPECT_LE(plan.options.segment_bytes, plan.options.budget_bytes / 2);
}

TEST(Environment, HandlesCrashesOnlyIfAskedTo) {
  EXPECT_FALSE(plan_from({{"DIAL9_ENABLED", "1"}}).handles_crashes);
  EXPECT_TRUE(plan_from({{"DIAL9_CRASH_HANDLER", "on"}}).handles_crashes);
}

TEST(Environment, TurnsTheDirectoryOffForAMemoryRing) {
  EXPECT_TRUE(plan_from({{"DIAL9_MEMORY_RING", "on"}}).options.directory.empty());
}

TEST(Environment, SaysThatADirectoryHasNoEffectBesideAMemoryRing) {
  const EnvironmentPlan plan =
      plan_from({{"DIAL9_MEMORY_RING", "on"}, {"DIAL9_TRACE_DIR", "/data/traces"}});
  EXPECT_TRUE(plan.options.directory.empty());
  ASSERT_EQ(plan.messages.size(), 1u);
  EXPECT_NE(plan.messages[0].find("DIAL9_TRACE_DIR"), std::string::npos);
  EXPECT_TRUE(plan_from({{"DIAL9_MEMORY_RING", "on"}}).messages.empty());
}

TEST(Environment, HasTheRateAndTheSignalOfCpuSamples) {
  EXPECT_EQ(plan_from({}).cpu_sample_hz, 99U);
  EXPECT_EQ(plan_from({{"DIAL9_CPU_PROFILE_ENABLED", "off"}}).cpu_sample_hz, 0U);
  const EnvironmentPlan plan =
      plan_from({{"DIAL9_CPU_SAMPLE_HZ", "499"}, {"DIAL9_CPU_SIGNAL", "45"}});
  EXPECT_EQ(plan.cpu_sample_hz, 499U);
  EXPECT_EQ(plan.cpu_signal, 45);
  for (const char* odd : {"0", "-1", "nan", "1e9", "1001", ""}) {
    const EnvironmentPlan refused = plan_from({{"DIAL9_CPU_SAMPLE_HZ", odd}});
    EXPECT_EQ(refused.cpu_sample_hz, 99U) << odd;
    EXPECT_EQ(refused.messages.size(), 1U) << odd;
  }
}

TEST(Environment, NamesTheBackendOfCpuSamples) {
  EXPECT_EQ(plan_from({}).cpu_backend, CpuSampleBackend::kAutomatic);
  const std::pair<const char*, CpuSampleBackend> known[] = {{"auto", CpuSampleBackend::kAutomatic},
                                                            {"timers", CpuSampleBackend::kTimers},
                                                            {"perf", CpuSampleBackend::kPerf}};
  for (const auto& [text, backend] : known) {
    const EnvironmentPlan plan = plan_from({{"DIAL9_CPU_BACKEND", text}});
    EXPECT_EQ(plan.cpu_backend, backend) << text;
    EXPECT_TRUE(plan.messages.empty()) << text;
  }
  const EnvironmentPlan odd = plan_from({{"DIAL9_CPU_BACKEND", "ctimer"}});
  EXPECT_EQ(odd.cpu_backend, CpuSampleBackend::kAutomatic);
  ASSERT_EQ(odd.messages.size(), 1U);
  EXPECT_NE(odd.messages[0].find("auto, timers or perf"), std::string::npos);
  EXPECT_EQ(plan_from({{"DIAL9_FORCE_CTIMER", "1"}}).cpu_backend, CpuSampleBackend::kTimers);
  const EnvironmentPlan both =
      plan_from({{"DIAL9_FORCE_CTIMER", "1"}, {"DIAL9_CPU_BACKEND", "perf"}});
  EXPECT_EQ(both.cpu_backend, CpuSampleBackend::kTimers);
  EXPECT_EQ(both.messages.size(), 1U);
}

TEST(Environment, LockWaitsHaveStacksUnlessTurnedOff) {
  EXPECT_TRUE(plan_from({}).has_lock_stacks);
  EXPECT_FALSE(plan_from({{"DIAL9_LOCK_STACKS_ENABLED", "no"}}).has_lock_stacks);
  EXPECT_TRUE(plan_from({}).has_function_names);
  EXPECT_FALSE(plan_from({{"DIAL9_FUNCTION_NAMES_ENABLED", "no"}}).has_function_names);
}

TEST(Environment, HasTheRateOfOffCpuSamples) {
  EXPECT_EQ(plan_from({}).off_cpu_hz, 50U);
  EXPECT_EQ(plan_from({{"DIAL9_SCHEDULE_PROFILE_ENABLED", "off"}}).off_cpu_hz, 0U);
  EXPECT_EQ(plan_from({{"DIAL9_OFF_CPU_SAMPLE_HZ", "20"}}).off_cpu_hz, 20U);
  EXPECT_FALSE(plan_from({}).has_off_cpu_switches);
  EXPECT_TRUE(plan_from({{"DIAL9_OFF_CPU_SWITCHES", "on"}}).has_off_cpu_switches);
  EXPECT_FALSE(plan_from({{"DIAL9_OFF_CPU_SWITCHES", "on"}}).has_off_cpu_switch_stacks);
  EXPECT_TRUE(plan_from({{"DIAL9_OFF_CPU_SWITCH_STACKS", "on"}}).has_off_cpu_switch_stacks);
  for (const char* odd : {"19", "101", "-1", ""}) {
    const EnvironmentPlan refused = plan_from({{"DIAL9_OFF_CPU_SAMPLE_HZ", odd}});
    EXPECT_EQ(refused.off_cpu_hz, 50U) << odd;
    EXPECT_EQ(refused.messages.size(), 1U) << odd;
  }
}

}  // namespace
}  // namespace dial9::internal
