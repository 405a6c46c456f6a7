// The probes of lttng_tracepoints.h: LTTng-UST makes them from the header with these two defines.
// Strongest property: nothing of ours is in here.
// Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_tracepoints.h"
