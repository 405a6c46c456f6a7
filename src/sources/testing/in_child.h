// A child in which perf_event_open is denied, as containers have it. Strongest property: nothing
// else is. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace dial9::internal::testing {

// From now on the system call of this number fails with `error` on this thread and those that it
// starts, for good.
bool deny_call(unsigned number, int error);
bool deny_perf(int error);  // perf_event_open

// From now on this process is nobody's, without any capability. False: it can't be.
bool become_nobody();

// Runs in a child, SIGPROF as in a fresh process unless told otherwise; its exit code, or 1,000 and
// the signal that ended it.
int in_child(const std::function<int()>& run, bool has_fresh_signals = true);

// Descriptors of this process that are perf events.
int open_perf_events();

}  // namespace dial9::internal::testing
