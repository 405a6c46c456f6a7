// Call stacks with the names of their frames, one sample, one wait off the CPU, and one dump of a
// suspended task.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "analysis/stack_names.h"
#include "server/json_fwd.h"
#include "server/run.h"

namespace dial9::server {

// [{"name", "file", "line", "address", "inlined"}], leaf first; at most 256 frames.
json frames_json(const Run& run, std::uint32_t stack,
                           analysis::Leaf leaf = analysis::Leaf::kInterrupted);
// The names of the first frames, "a < b < c"; addresses where no symbol is known.
std::string stack_text(const Run& run, std::uint32_t stack);
// The innermost frame that isn't of the language's own machinery, else the leaf.
std::string leaf_text(const Run& run, std::uint32_t stack);

// Indexes are valid in the run's trace.
json sample_json(const Run& run, std::uint32_t sample);
json wait_json(const Run& run, std::uint32_t wait);  // off the CPU
json dump_json(const Run& run, std::uint32_t dump);

}  // namespace dial9::server
