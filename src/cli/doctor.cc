// `dial9 doctor`: tries each part of the recorder on this machine, with this environment, and says
// what was expected, what was seen, and the cure. Spec: docs/guide/on_call.md, "doctor".
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/doctor_checks.h"
#include "cli/doctor_facts.h"
#include "cli/doctor_probe.h"
#include "cli/doctor_sources.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "session/environment.h"

namespace dial9::cli {
namespace {

struct Options {
  std::string directory;
  std::string program;
  std::string length = "1s";
  bool is_json = false;
  bool is_strict = false;
};

ProbeFacts probe(const internal::EnvironmentPlan& plan, const TrialDirectory& trial,
                 std::chrono::nanoseconds length) {
  ProbeOptions options;
  options.recorder = plan.options;
  options.recorder.directory = trial.path();
  options.recorder.removes_dead_runs = false;  // not in the user's name
  options.recorder.max_cpu_percent = 0;        // what a budget leaves out would count as missing
  options.recorder.max_mb_per_sec = 0;
  options.is_tsc_asked_for = plan.options.clock == ClockChoice::kTsc;
  options.length = length;
  options.usage_period = plan.process_usage_period;
  return run_probe(options);
}

std::vector<Check> check_all(const internal::EnvironmentPlan& plan, const Options& options,
                             const ProgramFacts& program) {
  const std::string& directory = plan.options.directory;
  std::vector<Check> checks;
  checks.push_back(check_environment({plan.is_enabled, plan.messages}));
  checks.push_back(check_kernel(look_at_kernel()));
  const TrialDirectory trial(directory);
  const LiveRecorders others = find_live_recorders(directory, trial);
  checks.push_back(check_directory(look_at_directory(directory, trial)));
  checks.push_back(check_space(look_at_space(plan.options, trial)));
  for (Check& check : check_limits(look_at_limits(plan.options))) {
    checks.push_back(std::move(check));
  }
  ProbeFacts facts;
  if (!directory.empty() && trial.path().empty()) {
    facts.recording.error = facts.clock.error = facts.lock.error = trial.error();
  } else {
    const auto length_ns = parse_duration(options.length).value_or(1'000'000'000);
    facts = probe(plan, trial, std::chrono::nanoseconds(length_ns));
  }
  facts.lock.knows_others = others.is_known;
  facts.lock.live_pids = others.pids;
  checks.push_back(check_lock(facts.lock));
  checks.push_back(check_recording(facts.recording));
  checks.push_back(check_clock(facts.clock));
  if (directory.empty() || !trial.path().empty()) {
    for (const SourceFacts& source : try_sources(plan, trial.path())) {
      checks.push_back(check_source(source));
    }
  }
  checks.push_back(check_sched(look_at_sched()));
  checks.push_back(check_perf(look_at_perf()));
  for (Check& check : check_program(program)) {
    checks.push_back(std::move(check));
  }
  return checks;
}

int run(const Options& options) {
  internal::EnvironmentPlan plan = internal::plan_from(internal::dial9_variables());
  if (!options.directory.empty()) plan.options.directory = options.directory;
  const ProgramFacts program = look_at_program(options.program);
  if (!options.program.empty() && !program.error.empty()) {
    report_error("doctor", Error{ErrorCode::kNotFound, program.error});
    return kUnreadable;
  }
  const std::vector<Check> checks = check_all(plan, options, program);
  write_out(options.is_json ? doctor_json(checks) : doctor_text(checks));
  flush_out();
  const VerdictCounts counts = count_verdicts(checks);
  const bool is_bad = counts.wrong != 0 || (options.is_strict && counts.warnings != 0);
  return is_bad ? kFindings : kOk;
}

}  // namespace

void add_doctor(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    verb.path("--dir", options.directory,
              "Directory of the recordings; else as the DIAL9_ variables say");
    verb.path("--program", options.program,
              "Program or process id whose frame pointers, debug info and build id are "
              "looked at; else dial9 itself");
    verb.duration("--for", options.length, "How long the trial recording takes")
        .with_default_shown();
    verb.flag("--json", options.is_json, "JSON instead of text");
    verb.flag("--strict", options.is_strict, "Exit with 1 on warnings too");
  };
  arguments.add<Options>(
      "doctor", "Does recording work here: each part tried, expected and seen, with the cure",
      declare, run);
}

}  // namespace dial9::cli
