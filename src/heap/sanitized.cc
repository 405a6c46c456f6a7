// In place of malloc.cc under a sanitizer. Spec: docs/spec/heap_samples.md, "Where it is refused".
// SPDX-License-Identifier: Apache-2.0
#include "dial9/heap_samples.h"

extern "C" const void* const dial9_heap_is_linked;
const void* const dial9_heap_is_linked = reinterpret_cast<const void*>(&dial9::add_heap_samples);
