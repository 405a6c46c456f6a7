// SPDX-License-Identifier: Apache-2.0
#include "sources/thread_timers.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace dial9::internal {
namespace {

constexpr char kStatus[] =
    "Name:\tio worker\nUmask:\t0022\nState:\tS (sleeping)\nSigPnd:\t0000000000000000\n"
    "SigBlk:\t0000000004000001\nSigIgn:\t0000000000001000\n";

TEST(ThreadStatus, HasTheNameAndWhetherASignalIsBlocked) {
  const ThreadFacts facts = parse_thread_status(kStatus, SIGPROF);
  EXPECT_EQ(facts.name, "io worker");
  EXPECT_TRUE(facts.is_blocking) << "bit 26 is signal 27";
  EXPECT_TRUE(parse_thread_status(kStatus, 1).is_blocking);
  EXPECT_FALSE(parse_thread_status(kStatus, SIGSEGV).is_blocking);
  EXPECT_FALSE(parse_thread_status(kStatus, 64).is_blocking);
}

TEST(ThreadStatus, OfSomethingElseSaysNothing) {
  for (const char* text : {"", "Name:", "Name:\t", "garbage\nSigBlk:\tffffffffffffffff\n",
                           "Name:\tx\nSigBlk:\tzz\n"}) {
    EXPECT_FALSE(parse_thread_status(text, SIGPROF).is_blocking) << text;
  }
}

}  // namespace
}  // namespace dial9::internal
