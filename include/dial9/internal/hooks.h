// What runtime integrations and built-in sources ask of the recorder besides recording. C++17, no
// standard library types. Spec: docs/spec/recorder.md, "Sources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// Sets a metadata entry of the process (`runtime.{name}`, `sched.wait_sample_rate`, ...): in every
// segment from now on, the current one included, of this and every later recorder. Copies. Takes a
// short lock: cold paths only.
void set_segment_metadata(const char* key, const char* value) noexcept;

// Calls `sample` every `period_ns` on the collector's thread while recording is enabled, for the life of
// the process. On time while the host records events; when it is idle only as often as the collector
// wakes anyway (250 ms). False: the name is taken. Takes a short lock.
bool add_sampler(const char* name, std::uint64_t period_ns, void (*sample)()) noexcept;

}  // namespace dial9::internal
