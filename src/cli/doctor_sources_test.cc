// What `dial9 doctor` makes of a source that was tried.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_sources.h"

#include <gtest/gtest.h>

#include <chrono>

namespace dial9::cli {
namespace {

SourceFacts sound() {
  SourceFacts facts;
  facts.name = "cpu_samples";
  facts.variable = "DIAL9_CPU_PROFILE_ENABLED";
  facts.is_on = true;
  facts.events = 6;
  facts.must_produce = true;
  return facts;
}

TEST(DoctorSources, ASourceThatProducesIsOk) {
  const Check check = check_source(sound());
  EXPECT_EQ(check.verdict, Verdict::kOk);
  EXPECT_EQ(check.name, "source: cpu_samples");
  EXPECT_EQ(check.seen, "6 events");
  EXPECT_TRUE(check.cure.empty());
}

TEST(DoctorSources, OneThatIsOffNamesTheVariable) {
  SourceFacts facts = sound();
  facts.is_on = false;
  facts.events = 0;
  const Check check = check_source(facts);
  EXPECT_EQ(check.verdict, Verdict::kOk);
  EXPECT_EQ(check.seen, "off (DIAL9_CPU_PROFILE_ENABLED)");
}

TEST(DoctorSources, OneThatIsRefusedSaysWhyAndHowToDoWithout) {
  SourceFacts facts = sound();
  facts.error = "SIGPROF is handled by libfoo.so";
  const Check check = check_source(facts);
  EXPECT_EQ(check.verdict, Verdict::kWarning);
  EXPECT_EQ(check.seen, "SIGPROF is handled by libfoo.so");
  EXPECT_NE(check.cure.find("DIAL9_CPU_PROFILE_ENABLED=false"), std::string::npos);
}

TEST(DoctorSources, OneThatShouldProduceAndMakesNothingOrLessIsAWarningWithItsOwnReason) {
  SourceFacts facts = sound();
  facts.events = 0;
  facts.reason = "nothing to record so far";
  EXPECT_EQ(check_source(facts).verdict, Verdict::kWarning);
  EXPECT_EQ(check_source(facts).seen, "0 events: nothing to record so far");
  facts.events = 3;
  facts.reason = "2 of 4 threads are sampled";
  EXPECT_EQ(check_source(facts).verdict, Verdict::kWarning);
}

TEST(DoctorSources, OneThatMayHaveNothingToTellIsOkWithoutEvents) {
  SourceFacts facts = sound();
  facts.must_produce = false;
  facts.events = 0;
  facts.reason = "nothing to record so far";
  EXPECT_EQ(check_source(facts).verdict, Verdict::kOk);
}

TEST(DoctorSources, WhereTheRecorderIsRefusedThoseThatAreOffStayOff) {
  internal::EnvironmentPlan plan;
  plan.resources_period = std::chrono::seconds(1);
  plan.off_cpu_hz = 20;
  const std::vector<SourceFacts> facts = try_sources(plan, "/dev/null/none");
  ASSERT_EQ(facts.size(), 5U);
  for (const SourceFacts& one : facts) {
    EXPECT_EQ(one.is_on, one.name == "resources" || one.name == "off_cpu_samples") << one.name;
    EXPECT_EQ(one.error.empty(), !one.is_on) << one.name;
    EXPECT_EQ(check_source(one).verdict, one.is_on ? Verdict::kWarning : Verdict::kOk) << one.name;
  }
}

}  // namespace
}  // namespace dial9::cli
