// A type that isn't a field's: the message lists what is.
// expect: dial9: this type cannot be a field of an event or span
// SPDX-License-Identifier: Apache-2.0
#include "dial9/event.h"

struct Address {
  int port;
};
#if defined(FIXED)
DIAL9_EVENT(Connected, (int, port));
#else
DIAL9_EVENT(Connected, (Address, peer));
#endif
void use() { dial9::record(Connected{}); }
