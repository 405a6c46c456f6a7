// A run of elsewhere beside the served ones.
// SPDX-License-Identifier: Apache-2.0
#include "server/base_runs.h"

#include <gtest/gtest.h>

#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

std::unique_ptr<testing::MemoryRuns> runs(const std::vector<std::pair<std::string, char>>& named) {
  auto out = std::make_unique<testing::MemoryRuns>();
  for (const auto& [id, byte] : named) out->add(id, testing::Bytes(3, std::uint8_t(byte)));
  return out;
}

std::string bytes_of(RunSource& source, const RunInfo& run) {
  std::string out;
  EXPECT_TRUE(source.read(run, 0, [&](std::span<const std::uint8_t> bytes) {
    out.append(bytes.begin(), bytes.end());
    return true;
  }));
  return out;
}

TEST(BaseRuns, StandBesideTheServedOnesUnderAnIdOfTheirOwn) {
  // As if somebody served a run of the very name.
  const auto source = with_base(runs({{"a", 'x'}, {"base:a", 'y'}}), runs({{"a", 'z'}}));
  ASSERT_TRUE(source);
  const auto listed = (*source)->list();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 3U);
  const std::string expected[] = {"a", "~base:a", "base:a"};
  const std::string bytes[] = {"xxx", "yyy", "zzz"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*listed)[i].id, expected[i]);
    EXPECT_EQ((*listed)[i].is_base, i == 2);
    EXPECT_EQ((*listed)[i].name, i == 1 ? "base:a" : "a");
    EXPECT_EQ(bytes_of(**source, (*listed)[i]), bytes[i]);
  }
}

TEST(BaseRuns, TakeTheNewestAndAreRefusedWhereThereIsNone) {
  const auto source = with_base(runs({}), runs({{"a", 'x'}, {"b", 'y'}}));
  ASSERT_TRUE(source);
  const auto listed = (*source)->list();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ((*listed)[0].id, "base:a") << "sources list the newest first";
  EXPECT_EQ(bytes_of(**source, (*listed)[0]), "xxx");
  const auto none = with_base(runs({{"a", 'x'}}), runs({}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace dial9::server
