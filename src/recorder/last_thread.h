// A process of which only threads of ours are left: its host ended all of its own threads, one by
// one, and counts on that to end the process. Strongest property: the process then ends with the
// status that it would have had without them, however many copies of the recorder are in it.
// Spec: docs/spec/recorder.md, "Collector".
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dial9::internal {

// The calling thread is a collector's: the other copies of the recorder in the process know it by
// its name and by SCHED_RESET_ON_FORK, which no thread that it starts has from it.
void mark_collector_thread() noexcept;

// Did all threads end but those that are marked, the calling one among them? False where /proc
// doesn't tell. Takes no descriptor and 2 us; where the main thread has ended and few others live,
// a descriptor at a time and 20 us, with forks held up meanwhile.
bool is_last_thread() noexcept;

// Called by each of the last threads. Ends the process as the main thread ended; where that was by
// pthread_exit() or with 0, returns: the C library ends it when the calling thread's function
// returns.
void end_as_the_main_thread_did() noexcept;

}  // namespace dial9::internal
