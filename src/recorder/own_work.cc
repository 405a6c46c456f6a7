// See own_work.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/own_work.h"

namespace dial9::internal {

__thread bool t_is_own_work __attribute__((tls_model("initial-exec"))) = false;

}  // namespace dial9::internal
