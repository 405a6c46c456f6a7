// What the fuzz targets call when a promise is broken: says which, and traps so that libFuzzer
// keeps the input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace dial9::fuzz {

inline void check(bool holds, const char* promise) {
  if (!holds) {
    std::fprintf(stderr, "broken promise: %s\n", promise);
    __builtin_trap();
  }
}

}  // namespace dial9::fuzz
