// Finds tasks by id or spawn location, spans by name and custom event types, without regard to
// case.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "server/json_fwd.h"
#include "server/run.h"

namespace dial9::server {

// At most `limit` hits, and how many there are in all. Cost: linear in names, tasks and spans.
json search_json(const Run& run, std::string_view text, std::uint64_t limit);

}  // namespace dial9::server
