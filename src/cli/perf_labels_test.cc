// Tenants with known shares of the CPU time, sampled by perf, which can't ask a thread for its
// label: what `dial9 flame --label` says of each. On a thread of the host's own, and in tasks that
// go on with their label on another worker.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <semaphore>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"
#include "dial9/cpu_samples.h"
#include "dial9/label.h"
#include "dial9/off_cpu.h"
#include "dial9/recorder.h"
#include "dial9/runtime.h"
#include "session/testing/perf_recording.h"

namespace dial9::cli {
namespace {

using nlohmann::json;

using dial9::testing::burn;
using dial9::testing::cpu_ms;
using dial9::testing::PerfRecording;

class SwitchLabels : public testing::CliTest {};

class PerfLabels : public testing::CliTest {
 protected:
  void SetUp() override {
    const std::string refusal = recording_.start(16 << 20);
    if (!refusal.empty()) GTEST_SKIP() << refusal;
  }
  void TearDown() override { recording_.stop(); }

  // A request of a tenant: what its label takes of the thread's CPU time.
  template <class Work>
  void serve(int request, Work work) {
    const char* const tenants[] = {"acme", "acme", "acme", "bolt", "bolt", "crux"};
    const char* const tenant = tenants[request % 6];
    const double before = cpu_ms();
    work(tenant, 40.0 + static_cast<double>(random_() % 80));
    spent_[tenant] += cpu_ms() - before;
  }
  json flame(const std::string& arguments) const {
    return json::parse(output_of("flame '" + path("trace.bin") + "' --json " + arguments, kOk));
  }
  // How many periods the heaviest sample stands for beyond its own: on a crowded CPU so much more
  // may be on the wrong side of each end of a request.
  double coarse_ms() const {
    double most = 1;
    std::istringstream lines(output_of("cat --type CpuSampleEvent '" + path("trace.bin") + "'"));
    for (std::string line; std::getline(lines, line);) {
      const json fields = json::parse(line)["fields"];
      if (!fields["weight"].is_null()) most = std::max(most, fields["weight"].get<double>());
    }
    return (most - 1) * 1'000 / PerfRecording::kHz;
  }
  void expect_the_shares() {
    ASSERT_TRUE(recording_.recorder().rotate(std::chrono::seconds(30)));
    ASSERT_TRUE(recording_.recorder().dump(path("trace.bin")).ok());
    const double coarse = coarse_ms();
    double all = 0;
    for (const auto& [tenant, ms] : spent_) all += ms;
    if (8 * coarse > 0.1 * all) GTEST_SKIP() << "samples too coarse here: " << coarse << " ms";
    const json labelled = flame("--label tenant");
    const double found = labelled["total"].get<double>();
    EXPECT_NEAR(found / 1e6, all, 0.05 * all + 8 * coarse);
    for (const auto& [tenant, ms] : spent_) {
      const double of_it = flame("--label tenant=" + tenant)["total"].get<double>();
      EXPECT_NEAR(of_it / found, ms / all, 0.02 + 8 * coarse / all)
          << tenant << " of " << found / 1e6 << " ms, coarse by " << coarse
          << labelled["notes"].dump(1);
    }
  }

  PerfRecording recording_;
  std::minstd_rand random_{7};
  std::map<std::string, double> spent_;
};

TEST_F(PerfLabels, ThreeTenantsOfOneThreadComeOutWithinTwoPercent) {
  recording_.wait_until_sampled(1);
  for (int request = 0; request < 36; ++request) {
    serve(request, [](const char* tenant, double ms) {
      const label scope("tenant", tenant);
      burn(ms);
    });
    if (request % 12 == 5) recording_.recorder().rotate(std::chrono::seconds(30));
  }
  expect_the_shares();
}

// Each task begins on one worker and ends on the other: its label is told on the first alone.
TEST_F(PerfLabels, ThreeTenantsWhoseTasksMoveBetweenWorkersComeOutWithinTwoPercent) {
  static runtime::Place place{"request"};
  const runtime::RuntimeId runtime = runtime::register_runtime("moving");
  constexpr int kRequests = 12;
  std::map<int, std::pair<runtime::TaskId, std::optional<label>>> open;
  std::binary_semaphore first_turn(1);
  std::binary_semaphore second_turn(0);
  const auto worker = [&](std::binary_semaphore& own, std::binary_semaphore& other, auto work) {
    return std::thread([&, work] {
      runtime::enter_worker(runtime);
      recording_.wait_until_sampled(3);
      for (int batch = 0; batch < 3; ++batch) {
        runtime::park();
        own.acquire();
        runtime::unpark();
        for (int request = 0; request < kRequests; ++request) work(request);
        other.release();
      }
      runtime::park();
      runtime::unpark();
    });
  };
  std::thread first = worker(first_turn, second_turn, [&](int request) {
    auto& [task, scope] = open[request];
    task = runtime::task_spawn(place, runtime);
    serve(request, [&](const char* tenant, double ms) {
      const runtime::PollScope poll(runtime, {task, &place});
      scope.emplace("tenant", tenant);
      burn(ms / 2);
    });
  });
  std::thread second = worker(second_turn, first_turn, [&](int request) {
    auto& [task, scope] = open[request];
    serve(request, [&](const char*, double ms) {
      const runtime::PollScope poll(runtime, {task, &place});
      burn(ms / 2);
      scope.reset();
    });
  });
  first.join();
  second.join();
  expect_the_shares();
}

// Waits so short that hardly one is seen by a look: only the switches tell of them.
TEST_F(SwitchLabels, WaitsThatOnlySwitchesSawHaveTheLabelUnderWhichTheyHappened) {
  const Status added =
      add_off_cpu_samples({.frequency_hz = 20, .has_switches = true, .requires_switches = true});
  if (!added.ok()) GTEST_SKIP() << added.message();
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(path("traces")));
  ASSERT_TRUE(status.ok()) << status.message();
  while (off_cpu_status().switch_threads == 0) burn(5);
  for (int pass = 0; pass < 2; ++pass) {  // as above
    recorder.rotate(std::chrono::seconds(30));
    burn(20);
  }
  recorder.rotate(std::chrono::seconds(30));
  // Each so many times, one after the other.
  const std::vector<std::string> turn = {"acme", "bolt", "acme", "crux", "acme", "bolt"};
  std::map<std::string, int> waited;
  for (std::size_t i = 0; i < 30 * turn.size(); ++i) {
    const std::string& tenant = turn[i % turn.size()];
    {
      const label scope("tenant", tenant);
      const timespec time{0, 1'000'000};
      ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
      ++waited[tenant];
    }
    if (i % 60 != 30) continue;
    const label other("tenant", "none of them");
    recorder.rotate(std::chrono::seconds(30));  // a segment begins with a list of what is open
  }
  const StopResult result = recorder.stop();  // with the switches since the last look
  remove_off_cpu_samples();
  const json events = json::parse(output_of("info --json '" + path("traces") + "'", kOk))["events"];
  EXPECT_EQ(events["total"].get<std::uint64_t>() - events["own"].get<std::uint64_t>(),
            result.events_written)
      << events.dump(1);
  const json found =
      json::parse(output_of("offcpu '" + path("traces") + "' --json --by label", kOk));
  for (const auto& [tenant, count] : waited) {
    int waits = 0;
    for (const json& group : found["groups"]) {
      if (group["name"] == "tenant=" + tenant) waits = group["waits"].get<int>();
    }
    // One that a look met may be in two pieces.
    EXPECT_NEAR(waits, count, 4) << tenant << found["groups"].dump(1);
  }
}

}  // namespace
}  // namespace dial9::cli
