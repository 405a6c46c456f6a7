// `dial9 spans`: where the time of the spans went, by name, as text or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "analysis/span_report.h"
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
  std::size_t limit = 30;
  std::uint64_t memory_mib = 4096;
};

int run(const Options& options) {
  const auto inputs = expand_inputs(options.paths);
  if (!inputs) {
    report_error("spans", inputs.error());
    return kUnreadable;
  }
  Outcome outcome;
  const analysis::Trace trace = load_trace(*inputs, options.memory_mib, outcome);
  if (outcome.exit_code() == kUnreadable) {
    return kUnreadable;
  }
  const std::vector<analysis::SpanGroup> groups = analysis::group_spans(trace);
  write_out(options.is_json ? analysis::span_json(trace, groups)
                            : analysis::span_text(trace, groups, options.limit));
  flush_out();
  return outcome.exit_code();
}

}  // namespace

void add_spans(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "spans",
      "Where the time of the spans went, by name: on a CPU, blocked, waiting, ready, unknown");
  const auto options = std::make_shared<Options>();
  verb->add_option(
          "PATH", options->paths,
          "Trace files, runs, or a directory of runs (its newest); - is the standard input")
      ->required();
  verb->add_flag("--json", options->is_json, "JSON instead of text");
  verb->add_option("--limit", options->limit, "Names in the text, those with most time first")
      ->capture_default_str();
  verb->add_option("--memory", options->memory_mib, "MiB that the loaded trace may take")
      ->check(CLI::Range(std::uint64_t{1}, kMostMemoryMib))
      ->capture_default_str();
  verb->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace dial9::cli
