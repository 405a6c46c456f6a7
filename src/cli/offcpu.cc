// `dial9 offcpu`: what threads waited for while they weren't on a CPU, as tables with functions,
// folded stacks, SVG or JSON.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/off_cpu.h"

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/flame_options.h"
#include "cli/inputs.h"
#include "cli/load_trace.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

using analysis::OffCpuBy;

constexpr OffCpuBy kAllBy[] = {OffCpuBy::kReason, OffCpuBy::kCall, OffCpuBy::kThread,
                               OffCpuBy::kTask,   OffCpuBy::kSpan, OffCpuBy::kLabel};

struct Options {
  TraceOptions trace;
  FilterOptions filter;
  FlameOptions flame;
  std::string by = "reason";
  bool has_parked = false;
  bool has_runnable = false;
};

OffCpuBy by_of(const std::string& text) {
  for (const OffCpuBy by : kAllBy) {
    if (analysis::off_cpu_by_name(by) == text) return by;
  }
  return OffCpuBy::kReason;
}

int run(const Options& options) {
  std::string wrong = check_form(options.flame, options.trace.is_json);
  if (wrong.empty()) wrong = check_range("--from", options.filter.from, "--to", options.filter.to);
  if (!wrong.empty()) return report_usage("offcpu", wrong);
  return with_trace("offcpu", options.trace, [&](const analysis::Trace& trace) {
    FileNamer namer(options.flame);
    const OffCpuBy by = by_of(options.by);
    const analysis::OffCpuReport report =
        analysis::off_cpu_report(trace,
                                 {.filter = filter_of(options.filter, trace),
                                  .by = by,
                                  .has_parked = options.has_parked,
                                  .has_runnable = options.has_runnable,
                                  .is_inverted = options.flame.is_inverted,
                                  .frames = options.flame.frame_by()},
                                 &namer);
    const bool is_json = options.trace.is_json || options.flame.format == "json";
    if (is_json) {
      write_out("{" + analysis::off_cpu_json(trace, report, by) + ",\n\"flame\": ");
    } else if (options.flame.format == "text") {
      write_out(analysis::off_cpu_text(trace, report, by, options.flame.limit));
    }
    write_flame(options.flame, is_json, report.tree, report.heading, namer);
    if (is_json) write_out("}\n");
    return kOk;
  });
}

}  // namespace

void add_offcpu(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_trace_options(verb, options.trace);
    std::vector<std::string> names;
    for (const OffCpuBy by : kAllBy) names.emplace_back(analysis::off_cpu_by_name(by));
    verb.text("--by", options.by, "What the waits are summed by")
        .one_of(names)
        .with_default_shown();
    verb.flag("--parked", options.has_parked, "With workers that wait for work");
    verb.flag("--runnable", options.has_runnable, "With waits for a CPU");
    add_filter_options(verb, options.filter);
    add_flame_options(verb, options.flame);
  };
  arguments.add<Options>("offcpu", "What threads waited for off the CPU: by reason, whom and path",
                         declare, run);
}

}  // namespace dial9::cli
