// The kernel's account of a thread, /proc/self/task/TID/schedstat: time on a CPU, time runnable but
// waiting for one, and slices run. Strongest property: at most runtime::kMaxSchedFiles descriptors
// are kept, all CLOEXEC, and a reading is never taken from a descriptor that was closed or reused.
// Spec: docs/spec/events_ours.md, "Kernel wait".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace dial9::internal {

struct SchedReading {
  std::uint64_t run_ns = 0;   // lags the thread's CPU clock by up to a scheduler tick while it runs
  std::uint64_t wait_ns = 0;  // runnable, not running
  std::uint64_t slices = 0;   // times it was put on a CPU
};

// What a thread knows of its kept file: the slot plus one; 0: none. Only a hint, checked on use.
struct SchedFileRef {
  std::atomic<std::uint32_t> slot_plus_one{0};
};

// Reads the account of thread `tid`, through the kept file or, for the collector, one opened for
// the moment (`may_open_briefly`). False: not known (no such thread, no file free, someone else
// reads it now, or a kernel without the account). Keeps errno. About 1 us with a kept file, 5
// without.
bool sched_read(SchedFileRef& file, std::uint32_t tid, bool may_open_briefly,
                SchedReading* reading) noexcept;

// At the end of the thread.
void sched_close(SchedFileRef& file, std::uint32_t tid) noexcept;
// All of them.
void sched_close_all() noexcept;
// In the child of a fork: closes the parent's, whoever held a slot. Async-signal-safe.
void sched_close_after_fork() noexcept;
// Kept descriptors now.
std::uint32_t sched_files_open() noexcept;

// "1234 567 8\n" as the kernel writes it. False: not that.
bool sched_parse(const char* text, std::size_t size, SchedReading* reading) noexcept;

}  // namespace dial9::internal
