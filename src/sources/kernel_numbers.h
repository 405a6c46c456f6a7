// Numbers out of the kernel's text files: /proc/stat, pressure files, cgroup files, a process's
// status and io. Strongest property: a number that the text doesn't have is absent, never zero; any
// text is safe.
// Spec: docs/spec/events_ours.md, "Resources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dial9::internal {

using MaybeNumber = std::optional<std::uint64_t>;

// A text that is one number, "max" or not understood: absent.
MaybeNumber parse_number(std::string_view text);
// The number behind `key` where a line begins with it ("nr_throttled 5", "VmRSS:    12 kB").
MaybeNumber find_number(std::string_view text, std::string_view key);

struct Pressure {
  MaybeNumber some_us;  // in all, so long at least one task waited
  MaybeNumber full_us;  // so long all that weren't idle waited; older kernels have none for CPUs
};
Pressure parse_pressure(std::string_view text);

// A process's memory in pages, of /proc/PID/statm.
struct Pages {
  MaybeNumber resident;
  MaybeNumber shared;  // of them, those of files and of shared memory; the rest is anonymous
};
Pages parse_statm(std::string_view statm);

// Sum over all CPUs of the time that the hypervisor gave to others, in the kernel's ticks.
MaybeNumber parse_steal_ticks(std::string_view proc_stat);

}  // namespace dial9::internal
