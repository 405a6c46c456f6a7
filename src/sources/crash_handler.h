// What a dying process says, and the parts that install_crash_handler() is made of. Strongest
// property: the handler is async-signal-safe, never waits, and a fault in it costs the event, not
// the host's own handling. Spec: docs/spec/recorder.md, "Crashes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/event.h"

namespace dial9::internal {

// `address` is 0 where the signal has none (sent by a process, or a fault without an address).
// `code` is the siginfo's si_code. The first frame is the interrupted instruction; `truncated`: the
// outermost one isn't among them.
DIAL9_EVENT(CrashEvent, (std::uint8_t, signal), (std::uint32_t, tid), (std::uint64_t, address),
            (::dial9::callchain, callchain), (std::int32_t, code), (bool, truncated));
// The handler that the host had before returned, and the process went on.
DIAL9_EVENT(SignalSurvivedEvent, (std::uint8_t, signal), (std::uint32_t, tid));

inline constexpr std::size_t kCrashFrames = 256;
// The most that a CrashEvent takes in a chunk: schema, stack and event.
inline constexpr std::size_t kCrashBytes = 512 + kCrashFrames * 8;

// Of an alternate signal stack that install_crash_handler() gives, below the signal frame.
inline constexpr std::size_t kCrashStackBytes = std::size_t{64} << 10;
// With less than this left for it the handler records the interrupted instruction alone; with less
// than kLeastStackBytes it records nothing. The handler's own frames, and the unwinder's.
inline constexpr std::size_t kWholeStackBytes = std::size_t{6} << 10;
inline constexpr std::size_t kLeastStackBytes = std::size_t{2} << 10;

// Events of signals that the host's own handlers may survive: at once, then one a second. A host
// that lives on such signals isn't slowed down, and its trace isn't filled.
inline constexpr std::uint32_t kSurvivableAtOnce = 64;

}  // namespace dial9::internal
