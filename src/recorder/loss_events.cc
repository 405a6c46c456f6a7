// See loss_events.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/loss_events.h"

namespace dial9::internal {

void put_loss_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kLossEventType, "RecorderLossEvent", true,
             {{"cause", FieldType::kPooledString},
              {"count", FieldType::kVarint},
              {"first_ns", FieldType::kVarint},
              {"last_ns", FieldType::kVarint}});
  out.annotations(kLossEventType, {{2, "unit", "ns"}, {3, "unit", "ns"}});
}

void put_loss(format::Encoder& out, std::uint64_t at_ns, std::string_view cause,
              std::uint64_t count, std::uint64_t first_ns, std::uint64_t last_ns) {
  out.begin(kLossEventType, at_ns);
  out.pooled_string(cause);
  out.varint(count);
  out.varint(first_ns);
  out.varint(last_ns);
}

}  // namespace dial9::internal
