// Loads the inputs of a verb into one trace, with progress and a message for each that ends early.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/trace.h"
#include "cli/inputs.h"

namespace dial9::cli {

// `memory_mib`: what the trace may take; the rest isn't loaded then, which `outcome` says.
analysis::Trace load_trace(const std::vector<Input>& inputs, std::uint64_t memory_mib,
                           Outcome& outcome);

}  // namespace dial9::cli
