// A small file's content, as the files under /proc and /sys are read: they have no size, and a read
// of one that opened may still fail (the thread is gone, the right is missing).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace dial9 {

// The whole content; of more than `most_bytes` the beginning. Errors: whatever open or read say.
// Thread-safe; allocates; never throws but for memory.
Result<std::string> read_whole_file(const std::string& path, std::size_t most_bytes = 16 << 20);

}  // namespace dial9
