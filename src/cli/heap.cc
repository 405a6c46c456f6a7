// `dial9 heap`: what was allocated and what lives, by site, task, span, label or thread, and what
// grew between two moments, as text, folded stacks, SVG or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "analysis/counts.h"
#include "analysis/heap_flame.h"
#include "analysis/heap_report.h"
#include "cli/arguments.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/flame_options.h"
#include "cli/ids.h"
#include "cli/inputs.h"
#include "cli/load_trace.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

using analysis::HeapBy;
using analysis::HeapOrder;

struct Options {
  TraceOptions trace;
  bool is_live = false;
  bool is_allocated = false;
  std::vector<std::string> growth;  // FROM TO
  std::string by = "site";
  std::string from;
  std::string to;
  std::string task;
  std::string span;
  std::string thread;
  std::string label;
  bool counts = false;
  FlameOptions flame;
};

std::uint64_t moment(const analysis::Trace& trace, const std::string& text, std::uint64_t missing) {
  return text.empty() ? missing
                      : analysis::sum_of(trace.begin_ns, parse_duration(text).value_or(0));
}

analysis::SampleFilter filter_of(const Options& options, const analysis::Trace& trace) {
  analysis::SampleFilter filter;
  const bool is_growth = !options.growth.empty();
  filter.from_ns = moment(trace, is_growth ? options.growth[0] : options.from, 0);
  filter.to_ns = moment(trace, is_growth ? options.growth[1] : options.to, ~std::uint64_t{0});
  if (!options.task.empty()) filter.task = to_id(options.task);
  if (!options.span.empty()) filter.span = to_id(options.span);
  if (!options.thread.empty()) filter.thread = std::to_string(to_id(options.thread).value_or(0));
  filter.label = options.label;
  return filter;
}

HeapBy by_of(const std::string& text) {
  if (text == "task") return HeapBy::kTask;
  if (text == "span") return HeapBy::kSpan;
  if (text == "label") return HeapBy::kLabel;
  return text == "thread" ? HeapBy::kThread : HeapBy::kSite;
}

void show_flame(const analysis::Trace& trace, const analysis::HeapReport& report,
                const Options& options, HeapOrder order) {
  FileNamer namer(options.flame);
  const analysis::HeapFlame flame =
      analysis::heap_flame(trace, report, order, options.counts, &namer, options.flame.is_inverted,
                           options.flame.frame_by());
  write_flame(options.flame, false, flame.tree, flame.heading, namer);
}

int show(const analysis::Trace& trace, const Options& options, HeapOrder order) {
  const bool is_flame = options.flame.format != "text" && !options.trace.is_json;
  analysis::HeapReport report = analysis::heap_report(trace, filter_of(options, trace),
                                                      is_flame ? HeapBy::kSite : by_of(options.by));
  if (is_flame) {
    show_flame(trace, report, options, order);
    return kOk;
  }
  if (const std::string_view lack = analysis::heap_lack(report, order); !lack.empty()) {
    report.notes.emplace(report.notes.begin(), lack);
  }
  FileNamer namer(options.flame);
  std::vector<std::string> sites;
  if (report.by == HeapBy::kSite) sites = analysis::heap_site_names(trace, report, &namer);
  const std::vector<std::string> notes = namer.notes();
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
  write_out(options.trace.is_json
                ? analysis::heap_json(trace, report, sites)
                : analysis::heap_text(trace, report, order, options.flame.limit, sites));
  return kOk;
}

// What is wrong with them; empty: nothing.
std::string check(const Options& options) {
  if (options.is_live && options.is_allocated) {
    return "--live and --allocated exclude each other";
  }
  if (options.trace.is_json && options.flame.is_format_given) {
    return "--json (the table) and --format " + options.flame.format + " exclude each other";
  }
  if (options.growth.empty()) return check_range("--from", options.from, "--to", options.to);
  if (options.is_live || options.is_allocated || !options.from.empty() || !options.to.empty()) {
    return "--growth FROM TO goes without --live, --allocated, --from and --to";
  }
  if (parse_duration(options.growth[0]).value_or(0) >=
      parse_duration(options.growth[1]).value_or(0)) {
    return "--growth FROM TO: FROM must be before TO, both from the trace's start";
  }
  return "";
}

int run(const Options& options) {
  if (const std::string wrong = check(options); !wrong.empty()) return report_usage("heap", wrong);
  HeapOrder order = options.is_live ? HeapOrder::kLive : HeapOrder::kAllocated;
  if (!options.growth.empty()) order = HeapOrder::kGrowth;
  return with_trace("heap", options.trace,
                    [&](const analysis::Trace& trace) { return show(trace, options, order); });
}

}  // namespace

void add_heap(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_trace_options(verb, options.trace);
    verb.flag("--allocated", options.is_allocated, "By what was allocated (unless told otherwise)");
    verb.flag("--live", options.is_live, "By what lives at the end of the range");
    verb.texts("--growth", options.growth,
               "FROM TO: by what lives at TO and didn't at FROM, times after the trace's start; "
               "leak candidates are marked")
        .taking(2)
        .check(check_duration);
    verb.text("--by", options.by, "Rows of the text and of --json")
        .one_of({"site", "task", "span", "label", "thread"})
        .with_default_shown();
    verb.text("--format", options.flame.format,
              "text: a table; folded: \"root;...;leaf weight\" a line a stack; svg: a picture; "
              "json: the flame tree (--json: the table)")
        .one_of({"text", "folded", "svg", "json"})
        .noted_in(options.flame.is_format_given)
        .with_default_shown();
    verb.flag("--count", options.counts, "Flame trees of allocations, not of bytes");
    verb.flag("--inverted", options.flame.is_inverted, "Flame trees from the leaf outwards");
    verb.duration("--from", options.from, "Only what was allocated from here on, as 1.5s");
    verb.duration("--to", options.to, "Up to here; live is what lives then");
    verb.text("--task", options.task, "Only of this task").check(check_id);
    verb.text("--span", options.span, "Only in this span, or in one inside it").check(check_id);
    verb.text("--thread", options.thread, "Only of this thread: its id").check(check_id);
    verb.text("--label", options.label, "Only with this label: NAME=VALUE, or NAME");
    add_lines_option(verb, options.flame);
    add_symbol_options(verb, options.flame);
    verb.number("--limit", options.flame.limit, "Rows of the text, those with most first")
        .in_range(0, kMostRows)
        .with_default_shown();
  };
  arguments.add<Options>(
      "heap", "What was allocated and what lives, where and for whom, and what grew", declare, run);
}

}  // namespace dial9::cli
