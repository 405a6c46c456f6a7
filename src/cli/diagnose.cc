// `dial9 diagnose`: what is wrong in a trace, worst first, as text or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "analysis/findings.h"
#include "analysis/report.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/load_trace.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool is_json = false;
  std::string fail_on = "never";
  std::string long_poll = "5ms";
  std::string ready_delay = "10ms";
  std::string blocking = "2ms";
  std::string kernel_wait = "5ms";
  std::uint32_t queue_depth = 64;
  std::uint32_t task_leak = 50;
  std::uint64_t memory_mib = 4096;
};

analysis::FindingOptions finding_options(const Options& options) {
  analysis::FindingOptions out;
  out.long_poll_floor_ns = parse_duration(options.long_poll).value_or(out.long_poll_floor_ns);
  out.ready_delay_floor_ns = parse_duration(options.ready_delay).value_or(out.ready_delay_floor_ns);
  out.blocking_floor_ns = parse_duration(options.blocking).value_or(out.blocking_floor_ns);
  out.kernel_wait_floor_ns = parse_duration(options.kernel_wait).value_or(out.kernel_wait_floor_ns);
  out.queue_depth_floor = options.queue_depth;
  out.task_leak_floor = options.task_leak;
  return out;
}

bool must_fail(const std::vector<analysis::Finding>& findings, const std::string& fail_on) {
  if (fail_on == "never") {
    return false;
  }
  const auto bar =
      fail_on == "warning" ? analysis::Severity::kWarning : analysis::Severity::kCritical;
  return std::any_of(findings.begin(), findings.end(),
                     [bar](const analysis::Finding& one) { return one.severity >= bar; });
}

int run(const Options& options) {
  const auto inputs = expand_inputs(options.paths);
  if (!inputs) {
    report_error("diagnose", inputs.error());
    return kUnreadable;
  }
  Outcome outcome;
  const analysis::Trace trace = load_trace(*inputs, options.memory_mib, outcome);
  if (outcome.exit_code() == kUnreadable) {
    return kUnreadable;
  }
  const std::vector<analysis::Finding> findings =
      analysis::diagnose(trace, finding_options(options));
  write_out(options.is_json ? analysis::report_json(trace, findings)
                            : analysis::report_text(trace, findings));
  flush_out();
  return must_fail(findings, options.fail_on) ? kFindings : outcome.exit_code();
}

}  // namespace

void add_diagnose(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("diagnose", "What is wrong in a trace, worst first");
  const auto options = std::make_shared<Options>();
  verb->add_option(
          "PATH", options->paths,
          "Trace files, runs, or a directory of runs (its newest); - is the standard input")
      ->required();
  verb->add_flag("--json", options->is_json, "JSON instead of text");
  verb->add_option("--fail-on", options->fail_on,
                   "Exit with 1 if a finding is at least this severe")
      ->check(CLI::IsMember({"never", "warning", "critical"}))
      ->capture_default_str();
  const auto floor = [&](const char* name, std::string& value, const char* what) {
    verb->add_option(name, value, what)->check(check_duration)->capture_default_str();
  };
  floor("--long-poll", options->long_poll, "Shorter polls are never a finding");
  floor("--ready-delay", options->ready_delay, "Shorter delays are never a finding");
  floor("--blocking", options->blocking, "Shorter blocking calls are never a finding");
  floor("--kernel-wait", options->kernel_wait, "Shorter waits for a CPU are never a finding");
  verb->add_option("--queue-depth", options->queue_depth, "Smaller rises are never a finding")
      ->capture_default_str();
  verb->add_option("--task-leak", options->task_leak, "Fewer tasks are never a leak")
      ->capture_default_str();
  verb->add_option("--memory", options->memory_mib, "MiB that the loaded trace may take")
      ->check(CLI::Range(std::uint64_t{1}, kMostMemoryMib))
      ->capture_default_str();
  verb->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace dial9::cli
