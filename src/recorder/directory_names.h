// What a directory holds, for the collector: the descriptor that this takes is noted, so that a
// fork in the middle of it leaves the child none. Strongest property: all names are read at once,
// so that no listing is open while files are made, renamed or removed.
// Spec: docs/spec/recorder.md, "Fork".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace dial9::internal {

// Names without "." and "..", in no order; at most about `most` of them. Errors: of the system.
Result<std::vector<std::string>> names_in(const std::string& directory,
                                          std::size_t most = ~std::size_t{0});

}  // namespace dial9::internal
