// `dial9 flame`: what the CPU time went into, by function and by path, of one trace or range, or
// against another: text, folded stacks, SVG or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "analysis/compared_runs.h"
#include "analysis/flame_diff.h"
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

struct Options {
  TraceOptions trace;
  FilterOptions filter;
  FlameOptions flame;
  std::string diff;  // a trace
  std::string diff_from;
  std::string diff_to;

  bool is_diff() const { return !diff.empty() || !diff_from.empty() || !diff_to.empty(); }
};

// What it is compared with, as a heading names it.
std::string before_name(const Options& options) {
  std::string name = options.diff;
  const auto add = [&](const char* word, const std::string& text) {
    if (!text.empty()) name += std::string(name.empty() ? "" : " ") + word + " " + text;
  };
  add("from", options.diff_from);
  add("to", options.diff_to);
  return name;
}

int show_diff(const Options& options, const analysis::Trace& before_trace,
              const analysis::Trace& after_trace) {
  FileNamer namer(options.flame);
  FilterOptions before_filter = options.filter;
  before_filter.from = options.diff_from;
  before_filter.to = options.diff_to;
  const analysis::OtherFilter other =
      analysis::filter_for(filter_of(before_filter, before_trace), after_trace, before_trace);
  const analysis::CpuFlame before = analysis::cpu_flame(
      before_trace, other.filter, &namer, options.flame.is_inverted, options.flame.frame_by());
  const analysis::CpuFlame after =
      analysis::cpu_flame(after_trace, filter_of(options.filter, after_trace), &namer,
                          options.flame.is_inverted, options.flame.frame_by());
  if (before.tree.unit() != after.tree.unit() && before.tree.count() != 0 &&
      after.tree.count() != 0) {
    std::fprintf(stderr,
                 "dial9 flame: one of the traces tells the rate of its samples and the other "
                 "doesn't: their weights can't be compared\n");
    return kUnreadable;
  }
  analysis::FlameDiffHeading heading{after.heading, before.heading, before_name(options), {}};
  const auto add = [](std::vector<std::string>& to, const std::vector<std::string>& notes) {
    to.insert(to.end(), notes.begin(), notes.end());
  };
  add(heading.notes, analysis::compared_notes(before_trace, after_trace));
  add(heading.notes, other.notes);
  add(heading.after.notes, namer.notes());
  const analysis::FlameMatch match =
      analysis::match_of(before_trace, after_trace, options.flame.frame_by());
  write_diff(options.flame, options.trace.is_json,
             analysis::flame_diff(before.tree, after.tree, match), heading);
  return kOk;
}

// What is wrong with them; empty: nothing.
std::string check(const Options& options) {
  std::string wrong = check_form(options.flame, options.trace.is_json);
  if (wrong.empty()) wrong = check_range("--from", options.filter.from, "--to", options.filter.to);
  if (wrong.empty()) {
    wrong = check_range("--diff-from", options.diff_from, "--diff-to", options.diff_to);
  }
  return wrong;
}

int run(const Options& options) {
  if (const std::string wrong = check(options); !wrong.empty()) return report_usage("flame", wrong);
  return with_trace("flame", options.trace, [&](const analysis::Trace& trace) -> int {
    if (options.is_diff() && options.diff.empty()) return show_diff(options, trace, trace);
    if (options.is_diff()) {
      TraceOptions other = options.trace;
      other.paths = {options.diff};
      return with_trace("flame", other, [&](const analysis::Trace& before) {
        return show_diff(options, before, trace);
      });
    }
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
    verb.path("--diff", options.diff,
              "A trace to compare with: what grew and what shrank since, each side by its own sum");
    verb.duration("--diff-from", options.diff_from,
                  "Compare with what comes after this time of that trace, or of the same one");
    verb.duration("--diff-to", options.diff_to,
                  "Compare with what comes before this time of that trace, or of the same one");
    add_flame_options(verb, options.flame);
  };
  arguments.add<Options>("flame", "What the CPU time went into, by function and by path", declare,
                         run);
}

}  // namespace dial9::cli
