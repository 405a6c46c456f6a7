// The wire has one presence byte a field.
// expect: dial9: an optional of an optional is no field
// SPDX-License-Identifier: Apache-2.0
#include "dial9/event.h"

#if defined(FIXED)
DIAL9_EVENT(Maybe, (dial9::optional<int>, value));
#else
DIAL9_EVENT(Maybe, (dial9::optional<dial9::optional<int>>, value));
#endif
void use() { dial9::record(Maybe{}); }
