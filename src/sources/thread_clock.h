// The CPU clock of another thread of this process, by its id: what the kernel charged it for.
// Strongest property: a thread of another process, or none, is an error, and so is 0, by which the
// kernel understands whoever asks. The kernel takes no lock for a thread that isn't on a CPU. One
// system call and no file, 0.3 us.
// Spec: docs/spec/off_cpu_samples.md, "Rest".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>

namespace dial9::internal {

// As pthread_getcpuclockid says it. Not 0.
inline clockid_t cpu_clock_of(std::uint32_t tid) noexcept {
  constexpr std::uint32_t kOfOneThread = 4;
  constexpr std::uint32_t kAsCharged = 2;  // in ns, not in ticks
  return static_cast<clockid_t>(~tid << 3 | kOfOneThread | kAsCharged);
}

// ns; nothing: see errno, EINVAL where there is no such thread. Not by the vDSO, which would look
// at it and hand it on.
inline std::optional<std::uint64_t> read_cpu_clock(std::uint32_t tid) noexcept {
  if (tid == 0) {
    errno = EINVAL;
    return std::nullopt;
  }
  timespec time{};
  if (::syscall(SYS_clock_gettime, cpu_clock_of(tid), &time) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace dial9::internal
