// A span stays where it was made: its address is how it is found when its task runs again.
// expect: deleted
// SPDX-License-Identifier: Apache-2.0
#include "dial9/span.h"

DIAL9_SPAN(Work, "work");
void use() {
  dial9::span<Work> work;
#if !defined(FIXED)
  dial9::span<Work> moved(static_cast<dial9::span<Work>&&>(work));
#endif
}
