// A run in a page of JSON: what is in it, what is missing from it, and what was found in it.
// Bounded: long lists are cut with their whole length beside them.
// Spec: docs/spec/http_api.md, "Summary", "Findings".
// SPDX-License-Identifier: Apache-2.0
#pragma once


#include "server/json_fwd.h"
#include "server/run.h"

namespace dial9::server {

json summary_json(const Run& run);
json findings_json(const Run& run);

// A relative moment, or null for kUnknownNs; a duration, or null.
json moment_json(const Run& run, std::uint64_t at_ns);
json duration_json(std::uint64_t ns);

}  // namespace dial9::server
