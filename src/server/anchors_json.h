// The clock anchors of a summary: few, and wall time by the nearest of them is as by all.
// Spec: docs/spec/http_api.md, "Summary".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/trace.h"

namespace dial9::server {

struct ThinAnchors {
  std::vector<analysis::Anchor> anchors;  // by monotonic time
  std::uint64_t error_ns = 0;             // the most that wall time is off by leaving others out
};

// At most `most` (4 or more) of `anchors`, which are by monotonic time. Of each stretch in which
// wall and monotonic time run alike the first and the last are kept, so that a step of the wall
// clock stays where it was; where there are too many stretches, those that differ by less than
// error_ns count as one, and at last the ends alone.
ThinAnchors thin_anchors(const std::vector<analysis::Anchor>& anchors, std::size_t most);

}  // namespace dial9::server
