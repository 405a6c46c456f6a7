// Platforms that don't show a thread's account and call to its own process.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/off_cpu.h"

namespace dial9 {

Status add_off_cpu_samples(const OffCpuOptions&) noexcept {
  return Status::failure("off-CPU samples: this platform isn't supported");
}
bool remove_off_cpu_samples() noexcept { return false; }
OffCpuStatus off_cpu_status() noexcept { return {}; }

}  // namespace dial9
