// The diagnosis as text for a person and as JSON for a program; both are stable, golden-tested
// forms. Spec: docs/spec/findings.md, "Report".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/findings.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// Wall time where the trace has an anchor, else "+1.234567s" from its start; "" for kUnknownNs.
std::string moment_text(const Trace& trace, std::uint64_t at_ns);

// A head of some lines (what was looked at, coverage), then the findings, worst first.
std::string report_text(const Trace& trace, const std::vector<Finding>& findings);

// {"trace": {...}, "findings": [...]} with a line feed at its end; a finding has kind, severity,
// message, count, worst_ns, at, at_ns and duration_ns (from the trace's start), where, worker,
// task, evidence, next. Unknown is null; task ids are strings.
std::string report_json(const Trace& trace, const std::vector<Finding>& findings);

}  // namespace dial9::analysis
