// `dial9 spans`: where the time of the spans went, by name, as text or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "analysis/span_report.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/load_trace.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

struct Options {
  TraceOptions trace;
  std::uint64_t limit = 30;
};

int run(const Options& options) {
  return with_trace("spans", options.trace, [&](const analysis::Trace& trace) {
    const std::vector<analysis::SpanGroup> groups = analysis::group_spans(trace);
    write_out(options.trace.is_json ? analysis::span_json(trace, groups)
                                    : analysis::span_text(trace, groups, options.limit));
    return kOk;
  });
}

}  // namespace

void add_spans(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_trace_options(verb, options.trace);
    verb.number("--limit", options.limit, "Names in the text, those with most time first")
        .in_range(0, kMostRows)
        .with_default_shown();
  };
  arguments.add<Options>(
      "spans",
      "Where the time of the spans went, by name: on a CPU, blocked, waiting, ready, unknown",
      declare, run);
}

}  // namespace dial9::cli
