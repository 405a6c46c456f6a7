// No table of modules on this platform: stacks keep their addresses.
// SPDX-License-Identifier: Apache-2.0
#include "sources/module_table.h"

namespace dial9::internal {

bool require_module_table() noexcept { return true; }

}  // namespace dial9::internal
