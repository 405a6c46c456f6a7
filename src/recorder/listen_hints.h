// Descriptors on which the process just called listen(), from the interposer to the source that
// samples accept queues. Strongest property: async-signal-safe and lock-free; a full table is
// noted, never waited for. A hint is no promise: by the time it is taken the descriptor may be
// closed, or another's. Spec: docs/spec/events_ours.md, "Accept queues".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace dial9::internal {

inline constexpr std::size_t kMostListenHints = 64;

// Any thread, any context. Keeps errno.
void hint_listener(int fd) noexcept;
// Moves the hints so far to `fds` (room for kMostListenHints) and returns their number;
// `is_overflown`: there were more, look at all descriptors. One thread at a time.
std::size_t take_listen_hints(int* fds, bool* is_overflown) noexcept;

}  // namespace dial9::internal
