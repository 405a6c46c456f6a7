// See whole_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/os_error.h"
#include "base/unique_fd.h"

namespace dial9 {

Result<std::string> read_whole_file(const std::string& path, std::size_t most_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return os_error(errno, "open", path);
  std::string text;
  std::array<char, 16384> part;
  while (text.size() < most_bytes) {
    const std::size_t wanted = std::min(part.size(), most_bytes - text.size());
    const ssize_t count = ::read(file.get(), part.data(), wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error(errno, "read", path);
    if (count == 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace dial9
