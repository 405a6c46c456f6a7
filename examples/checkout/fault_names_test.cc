// The table of faults and its parser.
// SPDX-License-Identifier: Apache-2.0
#include "fault_names.h"

#include <gtest/gtest.h>

#include <string>

namespace checkout {
namespace {

TEST(FaultNames, ParseAloneAndInLists) {
  for (const FaultInfo& info : all_faults()) {
    const auto set = parse_faults(info.name);
    ASSERT_TRUE(set.has_value()) << info.name;
    for (const FaultInfo& other : all_faults()) {
      EXPECT_EQ(set->has(other.fault), other.fault == info.fault);
    }
  }
  const auto two = parse_faults("hot-mutex,long-handler");
  ASSERT_TRUE(two.has_value());
  EXPECT_TRUE(two->has(Fault::kHotMutex));
  EXPECT_TRUE(two->has(Fault::kLongHandler));
  EXPECT_FALSE(two->has(Fault::kTaskLeak));
  EXPECT_TRUE(parse_faults("")->empty());
}

TEST(FaultNames, RefuseWhatDoesNotExistAndSayWhatDoes) {
  for (const char* wrong : {"slow", "long-handler,slow", "Long-Handler", "long-handler,,hopping"}) {
    const auto set = parse_faults(wrong);
    ASSERT_FALSE(set.has_value()) << wrong;
    EXPECT_NE(set.error().find("growing-queue"), std::string::npos);
  }
}

TEST(FaultNames, AreListedInTheirEnumerationsOrderWithFindingAndDescription) {
  ASSERT_EQ(all_faults().size(), kFaultCount);
  const std::string listing = describe_faults(88);
  unsigned index = 0;
  for (const FaultInfo& info : all_faults()) {
    EXPECT_EQ(static_cast<unsigned>(info.fault), index++);
    EXPECT_NE(listing.find(std::string(info.name) + "  (finding: " + std::string(info.finding)),
              std::string::npos);
    EXPECT_NE(info.description.find("diagnosis should show"), std::string::npos) << info.name;
  }
}

TEST(FaultNames, WrapTheListingAtTheWidthAskedFor) {
  const std::string listing = describe_faults(60);
  std::size_t start = 0;
  while (start < listing.size()) {
    const std::size_t end = listing.find('\n', start);
    EXPECT_LE(end - start, 60u) << listing.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace checkout
