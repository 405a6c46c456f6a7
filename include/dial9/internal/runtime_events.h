// The events that runtimes record (docs/spec/events.md, "Runtime"): names, fields and wire types
// are the ecosystem's. Recorded through the same path as a user's events: record_stamped(),
// record_at().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/event.h"

namespace dial9::internal {

DIAL9_EVENT(PollStartEvent, (std::uint64_t, worker_id), (std::uint8_t, local_queue),
            (std::uint64_t, task_id), (interned, spawn_loc));
DIAL9_EVENT(PollEndEvent, (std::uint64_t, worker_id));
DIAL9_EVENT(WakeEventEvent, (std::uint64_t, waker_task_id), (std::uint64_t, woken_task_id),
            (std::uint8_t, target_worker));
// Fixed, so that one look at a chunk's table tells whether it has all three of them
// (src/recorder/poll_events.h).
template <>
inline constexpr std::uint32_t kFixedTypeId<PollStartEvent> = 1;
template <>
inline constexpr std::uint32_t kFixedTypeId<PollEndEvent> = 2;
template <>
inline constexpr std::uint32_t kFixedTypeId<WakeEventEvent> = 3;

DIAL9_EVENT(WorkerParkEvent, (std::uint64_t, worker_id), (std::uint8_t, local_queue),
            (std::uint64_t, cpu_time_ns), (std::uint32_t, tid));
DIAL9_EVENT(WorkerUnparkEvent, (std::uint64_t, worker_id), (std::uint8_t, local_queue),
            (std::uint64_t, cpu_time_ns), (optional<std::uint64_t>, sched_wait_ns),
            (std::uint32_t, tid));
DIAL9_EVENT(TaskSpawnEvent, (std::uint64_t, task_id), (interned, spawn_loc), (bool, instrumented));
DIAL9_EVENT(TaskTerminateEvent, (std::uint64_t, task_id));
DIAL9_EVENT(TaskDumpEvent, (std::uint64_t, task_id), (::dial9::callchain, callchain));
DIAL9_EVENT(RuntimeMetricsEvent, (interned, runtime_name), (std::uint32_t, global_queue_depth),
            (std::uint32_t, alive_tasks));
DIAL9_EVENT(BlockingCallEvent, (std::uint32_t, tid), (std::uint64_t, task_id), (interned, call),
            (ns_u64, duration_ns), (optional<::dial9::callchain>, callchain));
DIAL9_EVENT(LockWaitEvent, (std::uint32_t, tid), (std::uint64_t, task_id), (std::uint64_t, lock),
            (optional<std::uint32_t>, owner_tid), (ns_u64, duration_ns),
            (optional<::dial9::callchain>, callchain), (bool, truncated),
            (std::uint8_t, kind));  // a runtime::LockKind

}  // namespace dial9::internal
