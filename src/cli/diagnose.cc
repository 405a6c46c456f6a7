// `dial9 diagnose`: what is wrong in a trace, worst first, as text or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "analysis/findings.h"
#include "analysis/report.h"
#include "cli/arguments.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/load_trace.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

struct Options {
  TraceOptions trace;
  std::string fail_on = "never";
  std::string long_poll = "5ms";
  std::string ready_delay = "10ms";
  std::string blocking = "2ms";
  std::string kernel_wait = "5ms";
  std::uint32_t queue_depth = 64;
  std::uint32_t task_leak = 50;
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
  return with_trace("diagnose", options.trace, [&](const analysis::Trace& trace) {
    const auto findings = analysis::diagnose(trace, finding_options(options));
    write_out(options.trace.is_json ? analysis::report_json(trace, findings)
                                    : analysis::report_text(trace, findings));
    return must_fail(findings, options.fail_on) ? kFindings : kOk;
  });
}

}  // namespace

void add_diagnose(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_trace_options(verb, options.trace);
    verb.text("--fail-on", options.fail_on, "Exit with 1 if a finding is at least this severe")
        .one_of({"never", "warning", "critical"})
        .with_default_shown();
    const auto floor = [&](const char* name, std::string& value, const char* what) {
      verb.duration(name, value, what).with_default_shown();
    };
    floor("--long-poll", options.long_poll, "Shorter polls are never a finding");
    floor("--ready-delay", options.ready_delay, "Shorter delays are never a finding");
    floor("--blocking", options.blocking, "Shorter blocking calls are never a finding");
    floor("--kernel-wait", options.kernel_wait, "Shorter waits for a CPU are never a finding");
    verb.number("--queue-depth", options.queue_depth, "Smaller rises are never a finding")
        .with_default_shown();
    verb.number("--task-leak", options.task_leak, "Fewer tasks are never a leak")
        .with_default_shown();
  };
  arguments.add<Options>("diagnose", "What is wrong in a trace, worst first", declare, run);
}

}  // namespace dial9::cli
