// The service as its clients and its operator see it, apart from any recording: shutdown, limits, a
// store that is gone, and what the programs say about wrong arguments.
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "fault_names.h"
#include "service_run.h"

namespace dial9::testing {
namespace {

const std::string kGetHealth = "GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n";
const std::string kHealthy = "{\"status\":\"ok\"}\n";

TEST(Service, FinishesAHalfReceivedRequestWhenItIsToldToStop) {
  ServiceRun run;
  run.start({});
  Connection busy(run.port());
  Connection idle(run.port());
  // One whole request and the start of the next at once: with the first answer, the service has
  // both.
  ASSERT_TRUE(busy.send(kGetHealth + kGetHealth.substr(0, 20)));
  ASSERT_TRUE(busy.receive(kHealthy).ends_with(kHealthy));
  run.service().send_signal(SIGTERM);
  EXPECT_EQ(idle.receive(), "");  // ends at once, so the shutdown has begun
  ASSERT_TRUE(busy.send(kGetHealth.substr(20)));
  const std::string answer = busy.receive();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  EXPECT_TRUE(run.service().wait().ok());
}

TEST(Service, GivesUpOnBusyClientsAfterItsDrainLimit) {
  ServiceRun run;
  run.start({"--drain-ms", "50"});
  Connection stuck(run.port());
  ASSERT_TRUE(stuck.send(kGetHealth + "GET /never-finished"));
  ASSERT_TRUE(stuck.receive(kHealthy).ends_with(kHealthy));
  run.stop();
  EXPECT_EQ(stuck.receive(), "");
}

TEST(Service, ClosesConnectionsOverItsLimitAndServesTheOthers) {
  ServiceRun run;
  run.start({"--max-connections", "1"});
  Connection first(run.port());
  ASSERT_TRUE(first.send(kGetHealth));
  ASSERT_TRUE(first.receive(kHealthy).ends_with(kHealthy));
  Connection second(run.port());
  EXPECT_EQ(second.receive(), "");
  ASSERT_TRUE(first.send(kGetHealth));
  EXPECT_TRUE(first.receive(kHealthy).ends_with(kHealthy));
  run.stop();
}

TEST(Service, AnswersUnavailableWhileItsStoreIsGone) {
  ServiceRun run;
  run.start({});
  run.store().send_signal(SIGKILL);
  EXPECT_EQ(run.store().wait().signal, SIGKILL);
  const std::string answer =
      run.http("GET /cart/a HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 1"), std::string::npos) << answer;
  run.stop();
}

TEST(Programs, ExplainWrongArgumentsAndDescribeTheFaults) {
  ServiceRun run;
  const std::string log = run.path("stderr.txt");
  EXPECT_EQ(run_program({DIAL9_CHECKOUT, "--fault", "slow"}, log).status.code, 2);
  EXPECT_NE(run.log().find("no fault is named 'slow'"), std::string::npos) << run.log();
  EXPECT_EQ(run_program({DIAL9_CHECKOUT, "--colour"}, log).status.code, 2);
  EXPECT_EQ(run_program({DIAL9_CHECKOUT_LOAD, "--pattern", "ramp"}, log).status.code, 2);
  EXPECT_EQ(run_program({DIAL9_CHECKOUT_LOAD, "--port", "1"}, log).status.code, 3);
  const Finished listing = run_program({DIAL9_CHECKOUT, "--list-faults"}, log);
  EXPECT_TRUE(listing.status.ok());
  EXPECT_EQ(listing.output, checkout::describe_faults());
}

TEST(Programs, TurnAFailingServiceIntoAnExitCode) {
  ServiceRun run;
  run.start({});
  run.store().send_signal(SIGKILL);
  run.store().wait();
  const Finished load =
      run_program({DIAL9_CHECKOUT_LOAD, "--port", std::to_string(run.port()), "--duration", "0.1"},
                  run.path("stderr.txt"));
  EXPECT_EQ(load.status.code, 3);  // the carts can't be written
  run.stop();
}

// Whatever its exit code: a process that is killed has none to show.
TEST(Programs, FailTheTestInWhichASanitizerReportsOnThem) {
  for (const std::string report : {"==7==ERROR: AddressSanitizer: heap-use-after-free on address",
                                   "WARNING: ThreadSanitizer: data race (pid=7)",
                                   "a.cc:1:2: runtime error: shift exponent 64 is too large"}) {
    static std::string command;
    command = "echo '" + report + "' >&2";
    EXPECT_NONFATAL_FAILURE(
        {
          ServiceRun run;
          run_program({"/bin/sh", "-c", command}, run.path("stderr.txt"));
        },
        "has_sanitizer_report");
  }
}

}  // namespace
}  // namespace dial9::testing
