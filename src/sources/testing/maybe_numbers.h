// A field of every event of a type where the field may be absent, in recorded order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recorder/test_support.h"

namespace dial9::internal::testing {

using MaybeNumbers = std::vector<std::optional<std::uint64_t>>;

inline MaybeNumbers maybe_numbers(const Trace& trace, const std::string& event,
                                  const std::string& field) {
  MaybeNumbers out;
  const format::MaterializedTrace& raw = trace.raw();
  for (const format::OwnedEvent& e : raw.events) {
    if (raw.schemas[e.schema].name != event) continue;
    const format::OwnedValue& value = *raw.field(e, field);
    out.push_back(value.is_present ? std::optional(value.bits) : std::nullopt);
  }
  return out;
}

}  // namespace dial9::internal::testing
