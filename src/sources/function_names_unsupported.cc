// Functions get their names from reading tools alone on this platform.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/source.h"

namespace dial9 {

Status add_function_names() noexcept {
  return Status::failure("function names: this platform isn't supported");
}

}  // namespace dial9
