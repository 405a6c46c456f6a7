// "One in so many was kept" of a RecorderShedEvent, from whatever a trace holds there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include "format/decoder.h"

namespace dial9::analysis {

// From 1 (all were kept; also for what is no such number) to a billion.
inline double shed_rate(const format::Value& value) {
  if (value.type != format::FieldType::kF64 || !value.is_present) {
    return 1;
  }
  const double told = std::bit_cast<double>(value.bits);
  constexpr double kMost = 1e9;
  return told > 1 ? std::min(told, kMost) : 1;
}

}  // namespace dial9::analysis
