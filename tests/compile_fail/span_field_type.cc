// Spans have the same field types as events.
// expect: dial9: this type cannot be a field of an event or span
// SPDX-License-Identifier: Apache-2.0
#include "dial9/span.h"

struct Money {
  long cents;
};
#if defined(FIXED)
DIAL9_SPAN(Payment, "payment", DIAL9_FIELDS((long, cents)));
#else
DIAL9_SPAN(Payment, "payment", DIAL9_FIELDS((Money, price)));
#endif
void use() { const dial9::span<Payment> payment; }
