// The connections that slow waits waited for, in words: facts as the kernel told them at a moment
// in the wait. Strongest property: what wasn't told isn't said; nothing is concluded.
// Spec: docs/spec/off_cpu_samples.md, "Sockets".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "analysis/sample_filter.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// "the peer had sent nothing for 1.20 s; rtt 300 us; no retransmits"
std::string socket_text(const SocketWait& wait);

// The last reading in a wait of the thread over [from, to]; null: none. O(log n + readings in it).
const SocketWait* socket_wait_in(const Trace& trace, std::uint32_t tid, std::uint64_t from_ns,
                                 std::uint64_t to_ns);

SampleContext context_of(const SocketWait& wait);

}  // namespace dial9::analysis
