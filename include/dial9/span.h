// Spans: one enter event, one exit event, with the time that the work was active and idle between them.
// Strongest property: exactly one enter and one exit a span, however often its coroutine is suspended
// and on however many threads it runs; abandoned or cancelled work exits with completed = false.
//
//   DIAL9_SPAN(Checkout, "checkout", ((std::uint64_t, order_id)), ((std::uint32_t, http_status)));
//   {
//     dial9::span<Checkout> span({order_id});
//     ...                              // co_await as you like
//     span.late.http_status = 200;     // kept if set before the end
//     span.complete();                 // else the exit says completed = false
//   }
//
// Spec: docs/spec/recorder.md, "Spans"; the events in docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/event.h"
#include "dial9/internal/span_core.h"
