// What every span has, whatever its fields: identity, parent, and the accounting of active and idle
// time across polls. The runtime seam calls the two hooks. Spec: docs/spec/recorder.md, "Spans".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// The seam (src/recorder/runtime.cc) calls these as the outermost poll of `task` begins and ends on this
// thread, with the stamp of that poll's event. Nothing to do for a task without open spans: one load.
void span_poll_start(std::uint64_t task, std::uint64_t now_ns) noexcept;
void span_poll_end(std::uint64_t task, std::uint64_t now_ns) noexcept;

}  // namespace dial9::internal
