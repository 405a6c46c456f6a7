// The edge of the public functions: no exception crosses it, and all that throws inside is memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "dial9/recorder.h"

namespace dial9::internal {

// What `call` returns; `otherwise`, if it throws.
template <class Call, class Value>
Value no_exception(Call call, Value otherwise) noexcept {
  try {
    return call();
  } catch (const std::exception&) {
    return otherwise;
  }
}

inline Status out_of_memory() {
  return Status::failure("out of memory");  // short enough not to allocate
}

}  // namespace dial9::internal
