// SPDX-License-Identifier: Apache-2.0
#include "sources/host_cpu.h"

#include <gtest/gtest.h>

namespace dial9::internal {
namespace {

TEST(HostCpu, OfAnIdleHostNeverFallsBelowWhatWasCounted) {
  HostCpu cpu;
  cpu.resume(1'000);
  EXPECT_EQ(cpu.count(990), 0U) << "the collector's clock was read earlier: not 2^64 - 10";
  EXPECT_EQ(cpu.count(1'000), 0U);
  EXPECT_EQ(cpu.count(1'040), 40U);
  EXPECT_EQ(cpu.count(1'010), 40U);
  EXPECT_EQ(cpu.count(1'041), 41U) << "what is read twice is counted once";
}

TEST(HostCpu, LeavesOutWhatWasUsedWhileNothingWasRecorded) {
  HostCpu cpu;
  cpu.resume(100);
  EXPECT_EQ(cpu.count(150), 50U);
  cpu.resume(1'000);
  EXPECT_EQ(cpu.count(999), 50U);
  EXPECT_EQ(cpu.count(1'005), 55U);
}

}  // namespace
}  // namespace dial9::internal
