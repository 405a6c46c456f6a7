// SPDX-License-Identifier: Apache-2.0
#include "cli/load_trace.h"

#include <algorithm>
#include <span>

#include "analysis/loader.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"

namespace dial9::cli {

namespace {

analysis::Trace load_trace(const std::vector<Input>& inputs, std::uint64_t memory_mib,
                           Outcome& outcome) {
  analysis::LoadOptions options;
  options.max_memory_bytes = std::min(memory_mib, ~std::uint64_t{0} >> 20) << 20;
  analysis::Loader loader(options);
  Progress progress("loading", inputs);
  for (const Input& input : inputs) {
    const std::uint64_t before = loader.events();
    loader.begin_input(input.name);
    Result<void> result = read_input(
        input, [&](std::span<const std::uint8_t> bytes) { return loader.feed(bytes); }, progress);
    if (Result<void> ended = loader.end_input(); result && !ended) {
      result = ended;
    }
    outcome.add(input.name, result, loader.events() - before);
  }
  return loader.finish();
}

}  // namespace

void add_trace_options(Verb& verb, TraceOptions& options) {
  add_paths(verb, options.paths);
  verb.flag("--json", options.is_json, "JSON instead of text");
  verb.number("--memory", options.memory_mib,
              "MiB that the loaded trace may take; up to 1.6 times as much while it is sorted")
      .in_range(1, kMostMemoryMib)
      .with_default_shown();
}

int with_trace(const char* verb, const TraceOptions& options,
               const std::function<int(const analysis::Trace&)>& use) {
  const auto inputs = expand_inputs(options.paths);
  if (!inputs) {
    report_error(verb, inputs.error());
    return kUnreadable;
  }
  Outcome outcome;
  const analysis::Trace trace = load_trace(*inputs, options.memory_mib, outcome);
  if (outcome.exit_code() == kUnreadable) {
    return kUnreadable;
  }
  const int exit_code = use(trace);
  flush_out();
  return exit_code == kOk ? outcome.exit_code() : exit_code;
}

}  // namespace dial9::cli
