// What a thread takes of memory by operator new, in tests of what must take none. Strongest
// property: where a sanitizer has its own operator new, that is said.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::server::testing {

bool are_allocations_counted();
// By the calling thread, so far.
std::uint64_t allocations();

}  // namespace dial9::server::testing
