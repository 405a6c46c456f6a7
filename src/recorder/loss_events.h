// The losses of a segment, sealed or recovered, as RecorderLossEvents. Spec: docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "format/encoder.h"

namespace dial9::internal {

inline constexpr std::uint16_t kLossEventType = 3;  // in the recorder's own streams

// Once a stream, before its losses.
void put_loss_schema(format::Encoder& out);
// `count` events were lost between two times; 0: nobody knows how many. Stamped `at_ns`.
void put_loss(format::Encoder& out, std::uint64_t at_ns, std::string_view cause,
              std::uint64_t count, std::uint64_t first_ns, std::uint64_t last_ns);

}  // namespace dial9::internal
