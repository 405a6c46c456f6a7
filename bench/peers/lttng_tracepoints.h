// Two tracepoints of LTTng-UST with the three fields that every peer records. Strongest property:
// they are alike, so that the one that no session enables shows the cost of "off".
// LTTng includes this file several times: no #pragma once. Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER dial9_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_tracepoints.h"

#if !defined(DIAL9_BENCH_LTTNG_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DIAL9_BENCH_LTTNG_TRACEPOINTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    dial9_bench, order,
    LTTNG_UST_TP_ARGS(uint64_t, order_id, uint32_t, status, uint64_t, latency_us),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, order_id, order_id)
                            lttng_ust_field_integer(uint32_t, status, status)
                                lttng_ust_field_integer(uint64_t, latency_us, latency_us)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    dial9_bench, order, dial9_bench, order_placed,
    LTTNG_UST_TP_ARGS(uint64_t, order_id, uint32_t, status, uint64_t, latency_us))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    dial9_bench, order, dial9_bench, never_enabled,
    LTTNG_UST_TP_ARGS(uint64_t, order_id, uint32_t, status, uint64_t, latency_us))

#endif

#include <lttng/tracepoint-event.h>
