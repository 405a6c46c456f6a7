// A value of another type than its field is refused by the language itself.
// expect: seventeen
// SPDX-License-Identifier: Apache-2.0
#include "dial9/event.h"

DIAL9_EVENT(Placed, (std::uint64_t, order_id));
#if defined(FIXED)
void use() { dial9::record(Placed{17}); }
#else
void use() { dial9::record(Placed{"seventeen"}); }
#endif
