// `dial9 info` of a process that recorded itself: what it counts is what the recorder says at its
// end that it recorded.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/testing/cli_test.h"
#include "dial9/cpu_samples.h"
#include "dial9/event.h"
#include "dial9/recorder.h"

namespace dial9::cli {
namespace {

using nlohmann::json;

DIAL9_EVENT(InfoCup, (std::uint32_t, number));

class InfoVerb : public testing::CliTest {};

TEST_F(InfoVerb, CountsTheEventsThatTheRecorderSaysItRecordedAndItsOwnApart) {
  const Status added = add_cpu_samples();  // each segment begins with the modules then
  ASSERT_TRUE(added.ok()) << added.message();
  RecorderOptions options = RecorderOptions::disk(path("traces"));
  options.budget_bytes = 64 << 20;
  auto [recorder, status] = Recorder::start(options);
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 1'000; ++i) record(InfoCup{i});
    ASSERT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  }
  recorder.disable();
  record(InfoCup{0});
  recorder.enable();
  record(InfoCup{1});
  const StopResult result = recorder.stop();
  remove_cpu_samples();
  EXPECT_EQ(result.events_dropped, 0U);
  const json info = json::parse(output_of("info --json '" + path("traces") + "'"));
  const json& events = info["events"];
  EXPECT_GE(info["files"].size(), 4U);
  EXPECT_EQ(events["by_type"]["InfoCup"], 3'001);
  EXPECT_GT(events["own"].get<std::uint64_t>(), 10U);
  EXPECT_EQ(events["total"].get<std::uint64_t>() - events["own"].get<std::uint64_t>(),
            result.events_written)
      << info.dump(1);
  const std::string text = output_of("info '" + path("traces") + "'");
  EXPECT_NE(text.find(" are the recorder's own ("), std::string::npos) << text;
  EXPECT_NE(text.find("off       recording was turned off for "), std::string::npos) << text;
}

}  // namespace
}  // namespace dial9::cli
