// What a request for a flame tree asks for: its parameters as the engine takes them, and the
// command line that shows the same. Strongest property: what a parameter says wrongly is refused
// by name; nothing that was asked for is left out silently. Spec: docs/spec/http_api.md, "Flame
// tree".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/flame_view.h"
#include "base/result.h"
#include "server/router.h"
#include "server/run.h"

namespace dial9::server {

inline constexpr std::uint64_t kMostFlameNodes = 20'000;
inline constexpr std::size_t kMostFlameTextBytes = 512;

// Of every flame resource; those that some lack come on top.
inline constexpr std::string_view kFlameParameters =
    "of top parked counts lines from to worker thread task span label nodes";

struct FlameCall {
  analysis::FlameQuery query;
  std::uint32_t nodes = 0;  // at most so many are written
};
// With `inverted` and `order` where the route takes them. The run outlives it.
Result<FlameCall> flame_call(const Call& call, const Run& run);

// A moment relative to the trace's start, as recorded.
std::uint64_t absolute_ns(const Run& run, double at_ns);

// [`from`, `to`) by the names of two parameters. Either may be missing.
Result<void> read_range(const Call& call, const Run& run, std::string_view from,
                        std::string_view to, analysis::SampleFilter& filter);

// A text parameter; empty where it is missing. Errors: longer than `most`.
Result<std::string> text_of(const Call& call, std::string_view name, std::size_t most);

// The command lines that tell the same of a trace, where there are some.
std::vector<std::string> flame_commands(const analysis::FlameQuery& query, const Run& run);

}  // namespace dial9::server
