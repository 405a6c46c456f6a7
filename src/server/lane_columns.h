// What the lanes show in a window: polls, parks and kernel waits, a lane at a time exactly or as
// bins.
// Strongest property: the size of the reply depends on the bins asked for, never on the trace.
// Spec: docs/spec/http_api.md, "Lanes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/run.h"
#include "server/window.h"

namespace dial9::server {

inline constexpr std::uint32_t kMaxLanes = 256;

struct LaneRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // first + count <= number of lanes
};

// The reply's columns. Cost: O(bins × log slices) a lane.
std::string lane_columns(const Run& run, const WindowQuery& window, LaneRange lanes);

// The same with the polls of one task only; `task` is an index of the trace's tasks.
std::string task_lane_columns(const Run& run, const WindowQuery& window, LaneRange lanes,
                              std::uint32_t task);

}  // namespace dial9::server
