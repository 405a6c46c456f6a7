// Everything that is known of one poll, park, span or custom event, as names and values for people.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/json_fwd.h"
#include "server/run.h"

namespace dial9::server {

// Indexes are valid in the run's trace.
json poll_json(const Run& run, std::uint32_t poll);
json park_json(const Run& run, std::uint32_t park);
json span_json(const Run& run, std::uint32_t span);
json event_json(const Run& run, EventRef event);

}  // namespace dial9::server
