// A process of which only a thread of ours is left: its host ended all of its own threads, one by
// one, and counts on that to end the process. Strongest property: the process then ends with the
// status that it would have had without this thread.
// Spec: docs/spec/recorder.md, "Collector".
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dial9::internal {

// Did all threads end but the calling one? False where /proc doesn't tell. Takes no descriptor and
// 2 us.
bool is_last_thread() noexcept;

// Called by the last thread. Ends the process as the main thread ended; where that was by
// pthread_exit() or with 0, returns: the C library ends it when the calling thread's function
// returns.
void end_as_the_main_thread_did() noexcept;

}  // namespace dial9::internal
