// What the recorder does for the runtimes (include/dial9/runtime.h): the collector's periodic
// samples, the metadata that names workers, and the end of a recording. Strongest property: every
// kernel file that the seam keeps is closed by runtime_release(), whatever threads do at that
// moment. Spec: docs/spec/events_ours.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dial9::internal {

// Collector's thread, while recording is enabled, every 10 ms where it can: RuntimeMetricsEvents,
// and every 100 ms a WorkerSchedEvent for each worker. Records nothing that hasn't changed for less
// than a second. Returns true where the collector need not come back for 100 ms: nothing moved.
bool runtime_collect(std::uint64_t now_ns) noexcept;

// Changes whenever runtime_metadata() would. Any thread.
std::uint64_t runtime_metadata_version() noexcept;
// `runtime.{name}` with the ids of its workers, "0,1,2", for each runtime that has or had any; and
// `sched.wait_sample_rate`.
std::vector<std::pair<std::string, std::string>> runtime_metadata();

// 1 of `rate` park cycles carries a sched_wait; 0 is taken as 1.
void runtime_set_sched_wait_sample_rate(std::uint32_t rate) noexcept;
// The name of the first runtime that is registered without one of its own (DIAL9_RUNTIME_NAME).
void runtime_set_default_name(const std::string& name) noexcept;

// Called on each thread that becomes a worker of a runtime from now on, in no lock. One hook.
void set_worker_hook(void (*hook)()) noexcept;

// At stop: closes the kernel files. They are opened again when a worker parks while recording.
void runtime_release() noexcept;

}  // namespace dial9::internal
