// See directory_names.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/directory_names.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/os_error.h"
#include "recorder/guarded_fd.h"

namespace dial9::internal {

Result<std::vector<std::string>> names_in(const std::string& directory, std::size_t most) {
  // Not by opendir: its descriptor would be the C library's to close.
  const GuardedFd fd = GuardedFd::open(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (!fd) return os_error(errno, "look into", directory);
  std::vector<std::string> names;
  alignas(dirent64) char entries[8192];
  for (;;) {
    const ssize_t bytes = ::getdents64(fd.get(), entries, sizeof entries);
    if (bytes < 0) return os_error(errno, "look into", directory);
    if (bytes == 0 || names.size() >= most) return names;
    for (ssize_t at = 0; at < bytes;) {
      std::uint16_t length = 0;
      std::memcpy(&length, entries + at + offsetof(dirent64, d_reclen), sizeof length);
      std::string name(entries + at + offsetof(dirent64, d_name));
      if (name != "." && name != "..") names.push_back(std::move(name));
      at += length;
    }
  }
}

}  // namespace dial9::internal
