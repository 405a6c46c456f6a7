// The reports of a load run: what they add up, and what counts as clean.
// SPDX-License-Identifier: Apache-2.0
#include "load/results.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace checkout::load {
namespace {

Results sample() {
  Results results;
  results.intended = 4;
  results.by_class[2] = 3;
  results.by_class[4] = 1;
  results.connections = 2;
  results.rate_hz = 2;
  results.duration_s = 2;
  for (std::uint64_t ns : {1'000'000, 2'000'000, 3'000'000, 100'000'000}) {
    results.latency_ns.record(ns);
  }
  return results;
}

TEST(Results, AreCleanOnlyIfAllThatWasIntendedWasAnsweredBelowFiveHundred) {
  EXPECT_TRUE(sample().is_clean());
  for (auto member : {&Results::timeouts, &Results::closed, &Results::bad_responses,
                      &Results::unsent, &Results::intended}) {
    Results results = sample();
    ++(results.*member);
    EXPECT_FALSE(results.is_clean());
  }
  Results results = sample();
  --results.by_class[2];
  ++results.by_class[5];
  EXPECT_FALSE(results.is_clean());
}

TEST(Results, AppearInFullInJson) {
  const auto json = nlohmann::json::parse(to_json(sample()));
  EXPECT_EQ(json.at("intended"), 4);
  EXPECT_EQ(json.at("answered"), 4);
  EXPECT_EQ(json.at("status").at("2xx"), 3);
  EXPECT_EQ(json.at("errors").at("timeout"), 0);
  EXPECT_EQ(json.at("achieved_hz"), 2.0);
  EXPECT_EQ(json.at("latency_ns").at("max"), 100'000'000);
  EXPECT_NEAR(json.at("latency_ns").at("p50").get<double>(), 2'000'000, 16'000);
}

TEST(Results, AppearWithUnitsInText) {
  const std::string text = to_text(sample());
  EXPECT_NE(text.find("4 intended, 4 answered (2xx 3, 4xx 1, 5xx 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("max 100.00 ms"), std::string::npos) << text;
}

TEST(Results, OfARunOfNoLengthHaveNoRate) {
  const auto json = nlohmann::json::parse(to_json(Results{}));
  EXPECT_EQ(json.at("achieved_hz"), 0.0);
}

}  // namespace
}  // namespace checkout::load
