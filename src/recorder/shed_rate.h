// The rates of shedding as the trace has them: one RecorderShedEvent a class and change. Spec:
// docs/spec/events_ours.md, "RecorderShedEvent". Strongest property: a stretch that is told has the
// counts of exactly what was decided in it, or none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/encoder.h"
#include "recorder/shed_class.h"

namespace dial9::internal {

struct ShedRate {
  std::uint64_t at_ns;
  std::uint64_t since_ns;
  std::size_t shed_class;
  double keep_one_in;
  std::uint64_t kept;  // between `since_ns` and `at_ns`
  std::uint64_t shed;
};

// From `at_ns` on `keep`; since `since_ns` `before`, under which `passed` was decided. Classes of
// which all was and is kept have none.
struct ShedChange {
  std::uint64_t at_ns;
  std::uint64_t since_ns;
  KeepOneIn keep;
  KeepOneIn before;
  ShedCounts passed;
};
std::vector<ShedRate> rates_of(const ShedChange& change);
// Of what threads have raised and the collector hasn't told.
std::vector<ShedRate> rates_of(const ShedRaises& raises);

// With the schema, under the type id, into the encoder.
void put_rates(format::Encoder& out, std::uint16_t type, std::span<const ShedRate> rates);

}  // namespace dial9::internal
