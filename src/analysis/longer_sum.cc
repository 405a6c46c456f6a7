// See longer_sum.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/longer_sum.h"

#include <algorithm>

#include "analysis/human.h"

namespace dial9::analysis {

void note_longer_sum(const Trace& trace, const SampleFilter& filter, FlameUnit unit,
                     std::uint64_t sum, FlameHeading& heading) {
  const Stretch stretch = stretch_of(trace, filter);
  const bool is_of_one_thread = stretch.has_span() || filter.worker;
  const std::uint64_t length_ns = stretch.to_ns - std::min(stretch.from_ns, stretch.to_ns);
  if (unit != FlameUnit::kNs || !is_of_one_thread || stretch.to_ns == kUnknownNs ||
      sum <= length_ns) {
    return;
  }
  heading.is_uncertain = true;
  heading.notes.insert(
      heading.notes.begin(),
      "it took " + human_duration(length_ns) +
          ": the sum is longer, of several threads at once or of samples that stand for more");
}

}  // namespace dial9::analysis
