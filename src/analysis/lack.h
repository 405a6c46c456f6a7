// What is said where a trace has nothing of what was asked for: how it is recorded, by the writer
// of this trace or by ours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "analysis/trace.h"

namespace dial9::analysis {

// "no CPU samples in this trace: record with HOW"; of a trace that wasn't read to its end, and of
// another writer's, it says so.
std::string lack_text(const Trace& trace, std::string_view what, std::string_view how);

}  // namespace dial9::analysis
