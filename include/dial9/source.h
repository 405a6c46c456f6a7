// Periodic events of the user's own: a callback that the collector calls, to record what it likes.
// Strongest property: a callback that is slow or throws is isolated and counted; it can't stop the
// recorder or another source for longer than it runs. Spec: docs/spec/recorder.md, "Sources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dial9/recorder.h"

namespace dial9 {

// Calls `sample` every `period` (at least 1 ms) on the collector's thread while recording is
// enabled; it records with dial9::record. A call that throws, or takes longer than a tenth of the
// period, counts as a failure in RecorderStatus::source_failures; after 10 failures in a row the
// period doubles, up to 64 times. Sources belong to the process: one added before start() is used
// by every later recorder. Any thread; not from inside a callback. `name` must be unique (letters,
// digits, '_', '.').
Status add_source(const std::string& name, std::chrono::nanoseconds period,
                  std::function<void()> sample) noexcept;

// Records a ProcessResourceUsageEvent (CPU time, memory, faults, context switches) every `period`
// while the host records, less often while it idles, or where there are so many threads that asking
// takes over 20 us (the event's period_ns says so); keeps a descriptor while recording. Link
// dial9_session. Fails where the platform has no such numbers, or if it was called before. Cost: at
// most 200 us a second, with 32 threads about 10 where the caches are warm (bench/resources).
Status add_process_usage(std::chrono::nanoseconds period = std::chrono::milliseconds(100)) noexcept;

// Records a TcpAcceptQueueEvent for each TCP socket on which this process listens, every `period`
// while the host records, less often while it idles. Link dial9_session. Fails on kernels without
// SO_COOKIE (before Linux 4.12), or if it was called before. Cost: 2 us a listener and sample;
// finding listeners 0.5 us a descriptor at the start and once a minute, where listen() isn't
// interposed.
Status add_accept_queues(std::chrono::nanoseconds period = std::chrono::milliseconds(400)) noexcept;

// Records a PlatformStallEvent for each time in which the platform held the process up: a late
// wake-up of the collector that the process can't have caused, throttling by its cgroup, steal,
// pressure, a step of the wall clock, a suspend. Looks every `period` while the host records, less
// often while it idles; keeps up to 5 descriptors while recording. Link dial9_session. Fails if it
// was called before. What the platform doesn't tell isn't recorded. Cost: about 25 us a second.
Status add_platform_stalls(
    std::chrono::nanoseconds period = std::chrono::milliseconds(100)) noexcept;

// Records, every `period` (less often while the host idles), memory, threads, descriptors and I/O
// (ProcessDetailEvent), usage and limits of the cgroup (CgroupUsageEvent), CPU time of up to 8
// threads in turn (ThreadCpuEvent); what is dear comes every 5 to 60 s (docs/spec/events_ours.md).
// Up to 8 descriptors. Link dial9_session. Fails if it was called before. What the kernel doesn't
// tell is absent. Cost: about 20 us a second with the process's usage, some times that where the
// caches are cold (bench/resources).
Status add_resources(std::chrono::nanoseconds period = std::chrono::seconds(1)) noexcept;

// Names the functions that CPU, off-CPU and heap samples lie in while they are loaded
// (SymbolTableEntries in each segment), so that a trace can be read where the program's files
// aren't. Of the program and the libraries that it started with, by their symbol tables; tools that
// have the files also find inlined functions and lines. Link dial9_session. For the process's life;
// a second call does nothing. Keeps no descriptor. Cost: a 500th of a CPU at most (20 ms at
// the end), on the recorder's thread; about 0.5 MiB for 1,000 functions, at the worst 20 MiB.
Status add_function_names() noexcept;

// After return the callback isn't running and won't run again. False: no such source.
bool remove_source(const std::string& name) noexcept;

}  // namespace dial9
