// The threads of this process as /proc lists them. Spec: docs/spec/cpu_samples.md, "Timers".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dial9::internal {

// What /proc says of a thread.
struct ThreadFacts {
  std::string name;
  bool is_blocking = false;  // blocks the signal
};
// From the text of /proc/self/task/TID/status.
ThreadFacts parse_thread_status(std::string_view status, int signal);

// The ids of all threads; empty where /proc can't be read. 14 us for 33 threads.
void list_threads(std::vector<std::uint32_t>& tids);

// /proc/self/task/TID/status; empty: the thread has ended, or it can't be read.
std::string read_thread_status(std::uint32_t tid);

// The rest of the line that begins with `key`, which has the newline before it where it isn't the
// first: "\nSigBlk:\t".
std::string_view status_value(std::string_view status, std::string_view key);

}  // namespace dial9::internal
