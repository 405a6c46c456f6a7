// What recording promises the service around it: a killed process leaves its sealed segments whole,
// a memory ring writes nothing until it is asked, and clients can't tell whether a recorder runs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "service_run.h"

namespace dial9::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<fs::path> sealed_segments(const fs::path& directory) {
  std::vector<fs::path> segments;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("trace.") && (name.ends_with(".bin") || name.ends_with(".bin.gz"))) {
      segments.push_back(entry.path());
    }
  }
  return segments;
}

std::string request(const std::string& method, const std::string& target,
                    const std::string& body = {}) {
  return method + ' ' + target +
         " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// One answer for each kind of thing that the service says.
std::vector<std::string> conversation(const ServiceRun& run) {
  std::vector<std::string> answers;
  for (const std::string& text :
       {request("GET", "/healthz"), request("PUT", "/cart/a", R"({"items":[]})"),
        request("GET", "/cart/a"), request("GET", "/cart/none"), request("GET", "/cart/b%20d"),
        request("POST", "/checkout", R"({"cart":"a","items":[{"sku":"tea","quantity":3}]})"),
        request("POST", "/checkout", R"({"cart":"a","items":[{"sku":"gin","quantity":3}]})"),
        request("POST", "/checkout", "not json"), request("DELETE", "/checkout"),
        request("POST", "/checkout", std::string(100000, 'x')), std::string("nonsense\r\n\r\n"),
        request("GET", "/elsewhere")}) {
    answers.push_back(run.http(text));
  }
  return answers;
}

TEST(Recording, OfAKilledServiceIsReadableUpToItsLastSealedSegment) {
  ServiceRun run;
  run.start({"--trace-dir", run.path("trace"), "--rotation-ms", "500"});
  run.load({});
  run.kill();

  const auto segments = sealed_segments(run.path("trace"));
  ASSERT_GE(segments.size(), 2u);
  for (const fs::path& segment : segments) {
    const json info = run.dial9_json({"info", segment});
    EXPECT_GT(info.at("events").at("total"), 0) << segment;
    EXPECT_FALSE(info.at("truncated")) << segment;
  }
  const json whole = run.dial9_json({"info", run.path("trace")});
  EXPECT_GT(whole.at("events").at("by_type").at("PollStartEvent"), 1000);
}

TEST(Recording, InAMemoryRingWritesOneTraceWhenAskedAndNothingElse) {
  ServiceRun run;
  const std::string dump = run.path("ring.bin");
  run.start({"--memory-ring", "--dump", dump});
  run.load({120, 1, 8});
  EXPECT_FALSE(fs::exists(dump));
  run.service().send_signal(SIGUSR1);
  const auto line = run.service().read_line();
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(*line, "checkout: dumped " + dump);
  run.stop();

  const json info = run.dial9_json({"info", dump});
  EXPECT_FALSE(info.at("truncated"));
  EXPECT_GT(info.at("events").at("by_type").at("PollStartEvent"), 100);
  EXPECT_TRUE(sealed_segments(run.directory()).empty());
}

TEST(Recording, CanNotBeNoticedByClients) {
  std::map<std::string, std::vector<std::string>> answers;
  for (const std::string mode : {"off", "disk", "memory"}) {
    ServiceRun run;
    std::vector<std::string> arguments;
    if (mode == "disk") arguments = {"--trace-dir", run.path("trace")};
    if (mode == "memory") arguments = {"--memory-ring"};
    run.start(arguments);
    answers[mode] = conversation(run);
    run.stop();
  }
  ASSERT_EQ(answers["off"].size(), 12u);
  for (const std::string& answer : answers["off"]) {
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 ")) << answer;
  }
  EXPECT_EQ(answers["disk"], answers["off"]);
  EXPECT_EQ(answers["memory"], answers["off"]);
}

TEST(Recording, IsSwitchedOnByTheEnvironment) {
  ServiceRun run;
  run.start({}, {"DIAL9_ENABLED=1", "DIAL9_TRACE_DIR=" + run.path("by-env")});
  run.load({120, 0.5, 8});
  run.stop();
  const json info = run.dial9_json({"info", run.path("by-env")});
  EXPECT_GT(info.at("events").at("by_type").at("PollStartEvent"), 50);
  EXPECT_FALSE(info.at("truncated"));
}

TEST(Recording, OfASpanPerRequestCarriesItsLateFields) {
  ServiceRun run;
  run.start({"--trace-dir", run.path("trace")});
  conversation(run);
  run.stop();
  std::map<int, int> by_status;
  std::istringstream lines(run.dial9({"cat", run.path("trace")}));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("SpanExit") == std::string::npos) continue;
    const json event = json::parse(line);
    const json& fields = event.contains("fields") ? event.at("fields") : event;
    if (fields.contains("status")) ++by_status[fields.at("status").get<int>()];
  }
  // Of the conversation's twelve, two never become a request (too big, not HTTP).
  EXPECT_EQ(by_status, (std::map<int, int>{{200, 3}, {201, 1}, {400, 3}, {404, 2}, {405, 1}}));
}

}  // namespace
}  // namespace dial9::testing
