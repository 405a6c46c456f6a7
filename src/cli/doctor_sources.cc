// See doctor_sources.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_sources.h"

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "analysis/human.h"
#include "base/descriptor_numbers.h"
#include "dial9/cpu_samples.h"
#include "dial9/off_cpu.h"
#include "dial9/recorder.h"
#include "dial9/source.h"

namespace dial9::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPeriod = std::chrono::milliseconds(20);
constexpr auto kLongest = std::chrono::seconds(3);
constexpr auto kDeadline = std::chrono::seconds(5);

// Runs for some periods of a sampler, and sleeps for as long.
void run_and_sleep() {
  const auto until = Clock::now() + std::chrono::milliseconds(60);
  for (volatile std::uint64_t turns = 0; Clock::now() < until;) turns = turns + 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

struct Source {
  const char* name;
  const char* variable;
  bool is_on;
  bool must_produce;
  std::function<Status()> add;
};

std::vector<Source> sources_of(const internal::EnvironmentPlan& plan) {
  return {
      {"platform_stalls", "DIAL9_PLATFORM_STALLS_ENABLED", plan.platform_stalls_period.count() != 0,
       false, [] { return add_platform_stalls(kPeriod); }},
      {"resources", "DIAL9_RESOURCES_ENABLED", plan.resources_period.count() != 0, true,
       [] { return add_resources(kPeriod); }},
      {"accept_queues", "DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED",
       plan.accept_queues_period.count() != 0, false, [] { return add_accept_queues(kPeriod); }},
      {"cpu_samples", "DIAL9_CPU_PROFILE_ENABLED", plan.cpu_sample_hz != 0, true,
       [plan] {
         return add_cpu_samples({.frequency_hz = plan.cpu_sample_hz,
                                 .signal = plan.cpu_signal,
                                 .backend = plan.cpu_backend});
       }},
      {"off_cpu_samples", "DIAL9_SCHEDULE_PROFILE_ENABLED", plan.off_cpu_hz != 0, true, [plan] {
         return add_off_cpu_samples({.frequency_hz = plan.off_cpu_hz,
                                     .has_switches = plan.has_off_cpu_switches,
                                     .has_switch_stacks = plan.has_off_cpu_switch_stacks});
       }}};
}

// `refusal` stands for the error of each that is on where it isn't empty: then none is started.
std::vector<SourceFacts> add_all(const internal::EnvironmentPlan& plan,
                                 const std::string& refusal) {
  std::vector<SourceFacts> facts;
  for (const Source& source : sources_of(plan)) {
    SourceFacts one;
    one.name = source.name;
    one.variable = source.variable;
    one.is_on = source.is_on;
    one.must_produce = source.must_produce;
    if (one.is_on) one.error = refusal.empty() ? source.add().message() : refusal;
    facts.push_back(std::move(one));
  }
  return facts;
}

void take_counts(std::vector<SourceFacts>& facts, const std::vector<SourceStatus>& statuses) {
  for (SourceFacts& one : facts) {
    for (const SourceStatus& status : statuses) {
      if (status.name != one.name) continue;
      one.events = status.events;
      one.reason = status.reason;
    }
  }
}

bool lacks_something(const std::vector<SourceFacts>& facts) {
  for (const SourceFacts& one : facts) {
    if (one.is_on && one.error.empty() && one.must_produce && one.events == 0) return true;
  }
  return false;
}

void remove_all() {
  remove_cpu_samples();
  remove_off_cpu_samples();
  for (const char* name : {"platform_stalls", "resources", "accept_queues"}) remove_source(name);
}

}  // namespace

Check check_source(const SourceFacts& facts) {
  Check check;
  check.name = "source: " + facts.name;
  check.expected = facts.must_produce ? "it records something of a thread that runs and sleeps"
                                      : "it can be started";
  const auto judge = [&](Verdict verdict, std::string seen, std::string cure) {
    check.verdict = verdict;
    check.seen = std::move(seen);
    check.cure = std::move(cure);
    return check;
  };
  if (!facts.is_on) return judge(Verdict::kOk, "off (" + facts.variable + ")", "");
  const std::string cure =
      "the reason says what is in the way; " + facts.variable + "=false does without it";
  if (!facts.error.empty()) return judge(Verdict::kWarning, facts.error, cure);
  std::string seen = analysis::counted(facts.events, "event");
  if (!facts.reason.empty()) seen += ": " + facts.reason;
  const bool is_short = facts.must_produce && (facts.events == 0 || !facts.reason.empty());
  return judge(is_short ? Verdict::kWarning : Verdict::kOk, seen, is_short ? cure : "");
}

std::vector<SourceFacts> try_sources(const internal::EnvironmentPlan& plan,
                                     const std::string& trial_directory) {
  RecorderOptions options = plan.options;
  options.directory = trial_directory;
  options.removes_dead_runs = false;
  options.max_cpu_percent = 0;  // what a budget thins would look like a shortfall
  options.max_mb_per_sec = 0;
  options.on_message = [](const std::string&) {};
  auto [recorder, status] = Recorder::start(options);
  if (!status || are_descriptors_few()) {
    return add_all(plan, status ? descriptor_shortage() : status.message());
  }
  std::vector<SourceFacts> facts = add_all(plan, "");
  const auto until = Clock::now() + kLongest;
  do {
    run_and_sleep();
    take_counts(facts, recorder.status().sources);
  } while (lacks_something(facts) && Clock::now() < until);
  const StopResult stopped = recorder.stop(kDeadline);
  take_counts(facts, stopped.sources);
  remove_all();
  return facts;
}

}  // namespace dial9::cli
