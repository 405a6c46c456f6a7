// Samples of running threads in a window, a row (a worker's lane or a thread) at a time, exactly or
// as counts. Spec: docs/spec/http_api.md, "Samples".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/run.h"
#include "server/window.h"

namespace dial9::server {

inline constexpr std::uint32_t kMaxSampleRows = 256;

// The reply's columns. `first` + `count` <= number of sample rows. Cost: O(bins × log samples) a
// row.
std::string sample_columns(const Run& run, const WindowQuery& window, std::uint32_t first,
                           std::uint32_t count);

}  // namespace dial9::server
