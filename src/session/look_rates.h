// The rates of shedding that a look at another process needs. Strongest property: of whatever was
// read, the rate is among them, or in a segment that was there before: also where the recorder
// changed the rates, or wrote them into its segment, while it was read.
// Spec: docs/spec/snapshot.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "recorder/shed_rate.h"

namespace dial9::internal {

// `raises()` gives what threads have raised and the recorder hasn't told, now; `read()` reads what
// was recorded. Each change once, in order.
template <class Raises, class Read>
std::vector<ShedRate> rates_around(const Raises& raises, const Read& read) {
  std::vector<ShedRate> rates = rates_of(raises());
  const std::uint64_t last_ns = rates.empty() ? 0 : rates.back().at_ns;
  read();
  for (const ShedRate& rate : rates_of(raises())) {
    if (rate.at_ns > last_ns) rates.push_back(rate);
  }
  return rates;
}

}  // namespace dial9::internal
