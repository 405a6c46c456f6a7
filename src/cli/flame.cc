// `dial9 flame`: what the CPU time went into, by function and by path: text, folded stacks, SVG or
// JSON.
// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/flame_options.h"
#include "cli/load_trace.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

struct Options {
  TraceOptions trace;
  FilterOptions filter;
  FlameOptions flame;
};

int run(const Options& options) {
  return with_trace("flame", options.trace, [&](const analysis::Trace& trace) {
    FileNamer namer(options.flame);
    const analysis::CpuFlame flame =
        analysis::cpu_flame(trace, filter_of(options.filter, trace), &namer,
                            options.flame.is_inverted, options.flame.frame_by());
    write_flame(options.flame, options.trace.is_json, flame.tree, flame.heading, namer);
    return kOk;
  });
}

}  // namespace

void add_flame(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_trace_options(verb, options.trace);
    add_filter_options(verb, options.filter);
    add_flame_options(verb, options.flame);
  };
  arguments.add<Options>("flame", "What the CPU time went into, by function and by path", declare,
                         run);
}

}  // namespace dial9::cli
