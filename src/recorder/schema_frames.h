// The schema and annotation frames of a declared event type, as wire bytes into a chunk. No
// allocation; async-signal-safe. Spec: docs/spec/trace_format.md, "Frames".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/field_traits.h"

namespace dial9::internal {

// Bytes that write_schema_frames() writes.
std::size_t schema_frame_bytes(const EventType& type) noexcept;

// Writes both frames (the second only if a field has an annotation) and returns the end.
std::uint8_t* write_schema_frames(std::uint8_t* at, const EventType& type,
                                  std::uint32_t id) noexcept;

}  // namespace dial9::internal
