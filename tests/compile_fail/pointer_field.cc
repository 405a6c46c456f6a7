// A pointer is no field: neither its address nor what it points to is meant for sure.
// expect: dial9: this type cannot be a field of an event or span
// SPDX-License-Identifier: Apache-2.0
#include "dial9/event.h"

#if defined(FIXED)
DIAL9_EVENT(Named, (dial9::text, name));
#else
DIAL9_EVENT(Named, (const char*, name));
#endif
void use() { dial9::record(Named{"x"}); }
