// Sampled values and markers in a window: queue depths, and the events of custom types, exactly
// where there are no more than pixels, else as bins. Spec: docs/spec/http_api.md, "Queues",
// "Custom events".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/run.h"
#include "server/window.h"

namespace dial9::server {

// Series that a summary lists and /queues returns: the first so many of a run.
inline constexpr std::size_t kMaxQueues = 1024;

// The first kMaxQueues series of the run. Cost: linear in the samples of the window (one each 10 ms
// and series).
std::string queue_columns(const Run& run, const WindowQuery& window);

// Events named `type`; `field`: whose numbers go into `value`, empty for none. Cost: O(log n) and
// linear in the events of the window.
std::string event_columns(const Run& run, const WindowQuery& window, std::string_view type,
                          std::string_view field);

}  // namespace dial9::server
