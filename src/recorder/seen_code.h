// The addresses of code that samplers have put into streams, for who names functions while they are
// loaded. Strongest property: nothing is kept unless somebody wants it, at most 4,096 addresses
// between two takings, and nobody waits: who finds another thread at it leaves its stack out.
// Spec: docs/spec/modules.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dial9::internal {

// What a stack's first frame is: an instruction that was interrupted, or where a call returns to.
enum class FirstFrame : std::uint8_t { kInterrupted, kReturn };

// Of a stack, leaf first. A return address is kept as the call before it. About 2 ns a frame.
void see_code(std::span<const std::uint64_t> frames, FirstFrame first) noexcept;

// From now on code is kept, or isn't. The collector's thread. Throws std::bad_alloc.
void want_seen_code(bool is_wanted);
// What was seen since, mostly once each.
std::vector<std::uint64_t> take_seen_code();

}  // namespace dial9::internal
