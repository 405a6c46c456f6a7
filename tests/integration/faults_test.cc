// Each fault of the checkout service is recorded here and now, and `dial9 diagnose` must name it; a
// run without a fault must stay free of warnings. The expectations come from the service's own
// table of faults, so a fault can't be added without a test.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "fault_names.h"
#include "service_run.h"

namespace checkout {
// How ctest shows the parameter: else by its bytes.
static void PrintTo(const FaultInfo& info, std::ostream* out) { *out << info.name; }
}  // namespace checkout

namespace dial9::testing {
namespace {

using nlohmann::json;

bool is_serious(const json& finding) {
  return finding.at("severity") == "warning" || finding.at("severity") == "critical";
}

std::vector<json> serious_findings(const json& diagnosis) {
  std::vector<json> serious;
  std::ranges::copy_if(diagnosis.at("findings"), std::back_inserter(serious), is_serious);
  return serious;
}

// Under a sanitizer nothing takes the time that it takes alone: there the service must run and be
// recorded without a report, whatever the diagnosis says.
#ifdef DIAL9_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// What the finding's "where" must name for the fault to count as found.
std::string_view place_of(checkout::Fault fault) {
  switch (fault) {
    case checkout::Fault::kLongHandler:
      return "session";
    case checkout::Fault::kBlockingRead:
      return "read";
    case checkout::Fault::kHotMutex:
      return "lock 0x";
    case checkout::Fault::kConnectStorm:
      return "pool-filler";
    case checkout::Fault::kOneStrand:
      return "strand 0x";
    case checkout::Fault::kOversubscribed:
      return "run queue of the kernel";
    case checkout::Fault::kHopping:
      return "quote";
    case checkout::Fault::kGrowingQueue:
      return "http";
    case checkout::Fault::kTaskLeak:
      return "price-watcher";
  }
  return {};
}

class Fault : public ::testing::TestWithParam<checkout::FaultInfo> {};

TEST_P(Fault, IsFoundByNameInARecordingOfIt) {
  const checkout::FaultInfo& info = GetParam();
  ServiceRun run;
  run.start(
      {"--trace-dir", run.path("trace"), "--fault", std::string(info.name), "--drain-ms", "500"});
  const json report = run.load({});
  ASSERT_GT(report.at("intended"), 0);
  run.stop();

  const json diagnosis = run.dial9_json({"diagnose", run.path("trace")});
  if (kIsSanitized) return;
  const auto serious = serious_findings(diagnosis);
  const auto found = std::ranges::find_if(serious, [&](const json& finding) {
    return finding.at("kind") == info.finding &&
           finding.at("where").get<std::string>().find(place_of(info.fault)) != std::string::npos;
  });
  ASSERT_TRUE(found != serious.end())
      << "no " << info.finding << " at " << place_of(info.fault) << " in " << diagnosis.dump(2);
  EXPECT_GE(found->at("count"), 1);
  EXPECT_GT(found->at("worst_ns"), 0);
  EXPECT_FALSE(found->at("message").get<std::string>().empty());
}

std::string test_name(const ::testing::TestParamInfo<checkout::FaultInfo>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Checkout, Fault,
                         ::testing::ValuesIn(checkout::all_faults().begin(),
                                             checkout::all_faults().end()),
                         test_name);

TEST(HotMutex, IsFoundWithTheThreadThatHeldIt) {
  ServiceRun run;
  run.start({"--trace-dir", run.path("trace"), "--fault", "hot-mutex"});
  run.load({});
  run.stop();
  const json diagnosis = run.dial9_json({"diagnose", run.path("trace")});
  if (kIsSanitized) return;
  bool names_holder = false;
  for (const json& finding : diagnosis.at("findings")) {
    if (finding.at("kind") != "blocking-call") continue;
    for (const json& line : finding.at("evidence")) {
      names_holder |= line.get<std::string>().starts_with("mostly held by thread ");
    }
  }
  EXPECT_TRUE(names_holder) << diagnosis.dump(2);
}

// Is it about the machine, and as the kernel has it of the service's threads? The bounds are those
// of docs/spec/findings.md.
bool is_of_a_busy_machine(const json& finding, const KernelTimes& during) {
  const auto waited_ns = static_cast<double>(during.waited_ns);
  if (finding.at("kind") == "kernel-wait") return during.share_waited() >= 0.5;
  if (finding.at("kind") != "platform-stall" || finding.at("where") != "late_wakeup") return false;
  const double least_ns = std::max(100e6, 0.05 * static_cast<double>(during.passed_ns));
  return waited_ns >= least_ns && waited_ns >= finding.at("worst_ns").get<double>();
}

TEST(CleanRun, HasNoFindingAboveInfoButOfABusyMachineWhereTheKernelSaysSo) {
  ServiceRun run;
  run.start({"--trace-dir", run.path("trace")});
  const KernelTimes before = run.kernel_times();
  const json report = run.load({.timeout_ms = 30'000});
  const KernelTimes after = run.kernel_times();
  ASSERT_GE(after.waited_ns, before.waited_ns) << "a thread of the service ended meanwhile";
  const KernelTimes during = after - before;
  if (!kIsSanitized) {
    EXPECT_EQ(report.at("answered"), report.at("intended"));
  }
  run.stop();

  const json diagnosis = run.dial9_json({"diagnose", run.path("trace")});
  if (kIsSanitized) return;
  for (const json& finding : serious_findings(diagnosis)) {
    EXPECT_TRUE(is_of_a_busy_machine(finding, during))
        << "ran " << during.ran_ns << " ns, waited " << during.waited_ns << " ns of "
        << during.passed_ns << "\n"
        << finding.dump(2);
  }
}

}  // namespace
}  // namespace dial9::testing
