// Loads the inputs of a verb into one trace, with progress and a message for each that ends early:
// the one way in which verbs take traces.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/trace.h"

namespace dial9::cli {

class Verb;

// What every verb that loads a trace takes.
struct TraceOptions {
  std::vector<std::string> paths;
  bool is_json = false;
  std::uint64_t memory_mib = 4096;  // that the trace may take; the rest isn't loaded then
};
void add_trace_options(Verb& verb, TraceOptions& options);

// Loads what the user named, gives it to `use` and flushes the output. The exit code: that of
// `use`, and where it is kOk, how the load went. `use` isn't called where nothing could be read.
int with_trace(const char* verb, const TraceOptions& options,
               const std::function<int(const analysis::Trace&)>& use);

}  // namespace dial9::cli
