// Platforms whose signals nobody has looked into yet.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/crash.h"

namespace dial9 {

Status install_crash_handler() noexcept {
  return Status::failure("crash handler: this platform isn't supported");
}

Status add_crash_stack() noexcept {
  return Status::failure("crash handler: this platform isn't supported");
}

}  // namespace dial9
