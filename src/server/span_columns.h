// Packed spans in a window, a row at a time exactly or as bins; and the whole trace in a strip.
// Spec: docs/spec/http_api.md, "Spans", "Minimap".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/run.h"
#include "server/window.h"

namespace dial9::server {

inline constexpr std::uint32_t kMaxSpanRows = 256;

// Rows first .. first + count - 1 of the packed spans, all below the trace's span_rows.
// Cost: O(bins × log spans) a row.
std::string span_columns(const Run& run, const WindowQuery& window, std::uint32_t first,
                         std::uint32_t count);

// The whole trace in `bins`. Cost: O(bins × lanes × log polls) and linear in spans and custom
// events.
std::string minimap_columns(const Run& run, std::uint32_t bins);

}  // namespace dial9::server
