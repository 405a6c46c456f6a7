// One task's whole life: totals over all of it, and a page of its spawn, wakes, polls and end in
// order of time. Spec: docs/spec/http_api.md, "One task".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/json_fwd.h"
#include "server/run.h"

namespace dial9::server {

inline constexpr std::uint64_t kMaxTaskRows = 1000;

// `task` is an index of the trace's tasks; rows [offset, offset + limit) of its life.
// Cost: linear in the task's polls (for the totals) and in `offset`.
json task_json(const Run& run, std::uint32_t task, std::uint64_t offset,
                         std::uint64_t limit);

}  // namespace dial9::server
