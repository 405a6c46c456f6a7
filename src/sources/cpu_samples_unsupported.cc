// Platforms without CPU timers for single threads.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/cpu_samples.h"

namespace dial9 {

Status add_cpu_samples(const CpuSampleOptions&) noexcept {
  return Status::failure("CPU samples: this platform isn't supported");
}
bool remove_cpu_samples() noexcept { return false; }
CpuSampleStatus cpu_sample_status() noexcept { return {}; }

}  // namespace dial9
