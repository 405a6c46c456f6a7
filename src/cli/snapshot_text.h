// A look at another process as one page of text, and as JSON. Both are pure functions of it.
// Spec: docs/spec/snapshot.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/snapshot_view.h"

namespace dial9::cli {

// `trace_path`: where the trace was written; empty: it wasn't.
std::string snapshot_text(const ProcessView& view, const std::string& trace_path);
std::string snapshot_json(const ProcessView& view, const std::string& trace_path);

// The workers, by how long they have been in what they do: polls first, parks last.
std::vector<analysis::WorkerNow> workers_by_urgency(const ProcessView& view);

}  // namespace dial9::cli
