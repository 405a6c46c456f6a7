// Platforms whose process numbers nobody has written yet.
// SPDX-License-Identifier: Apache-2.0
#include "sources/process_usage.h"

namespace dial9::internal {

bool is_process_usage_supported() noexcept { return false; }
bool read_process_usage(ProcessResourceUsageEvent*) noexcept { return false; }

}  // namespace dial9::internal
