// A library to load and unload. It is built several times, with frames of DIAL9_PLUGIN_FRAME bytes:
// everything else, its layout above all, is the same, so that one can take another's place.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

// Calls back with a frame of its own in between.
extern "C" int plugin_call(void (*callback)(void*), void* data) {
  volatile char frame[DIAL9_PLUGIN_FRAME];
  frame[0] = 1;
  asm volatile("" : : "r"(frame) : "memory");  // no compiler may shrink it
  callback(data);
  return frame[0];
}

// Goes through linkage stubs that are bound at their first call.
extern "C" int plugin_use_libc(const char* text) {
  char* const copy = strdup(text);
  const int value = std::atoi(copy) + static_cast<int>(std::strlen(copy)) + std::abs(-3);
  std::free(copy);
  return value;
}
