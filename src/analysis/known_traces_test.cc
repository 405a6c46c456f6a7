// Traces that the ecosystem's writers made, in the dialects of their time, load whole. They lie
// outside the repository; without them the tests skip.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "analysis/delays.h"
#include "analysis/findings.h"
#include "analysis/loader.h"

namespace dial9::analysis {
namespace {

struct Known {
  const char* file;
  std::uint64_t events;
  std::uint64_t polls;
  std::uint64_t spans;
  std::uint32_t workers;
};
constexpr Known kKnown[] = {
    {"demo-trace.2026-06-22.69957458.bin", 516'950, 94'212, 27'524, 2},
    {"block_in_place.2026-05-21.93366247.bin", 909, 174, 0, 4},
    {"demo-trace.2026-03-19.1cbc9028.bin", 135'413, 30'290, 0, 2},
    {"demo-trace.2026-05-15.95d621b4.bin", 210'639, 36'801, 9'890, 2},
};

class KnownTraces : public ::testing::TestWithParam<Known> {};

TEST_P(KnownTraces, LoadWholeAndAreWell) {
  const char* const shared = std::getenv("DIAL9_SHARED");
  const std::filesystem::path path =
      std::filesystem::path(shared != nullptr ? shared : DIAL9_SOURCE_DIR "/../shared") / "traces" /
      GetParam().file;
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "no " << path << "; set DIAL9_SHARED to where it lies";
  }
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)), {});
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const Trace trace = load(bytes);
  EXPECT_FALSE(trace.is_truncated());
  EXPECT_EQ(trace.events, GetParam().events);
  EXPECT_EQ(trace.polls.size(), GetParam().polls);
  EXPECT_EQ(trace.spans.size(), GetParam().spans);
  EXPECT_EQ(trace.lanes.size(), GetParam().workers);
  EXPECT_EQ(trace.inversions, 0U);
  // Their authors found nothing wrong with these programs beyond single long polls.
  for (const Finding& finding : diagnose(trace)) {
    EXPECT_EQ(finding.severity, Severity::kInfo) << finding.message;
  }
}

// "demo_trace_2026_06_22", of a file's name.
std::string test_name(const ::testing::TestParamInfo<Known>& info) {
  std::string name(info.param.file);
  name.resize(name.find('.', name.find("2026")));
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Traces, KnownTraces, ::testing::ValuesIn(kKnown), test_name);

}  // namespace
}  // namespace dial9::analysis
