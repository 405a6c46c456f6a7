// See directory_names.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/directory_names.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "base/os_error.h"
#include "base/unique_fd.h"
#include "recorder/fork_fds.h"

namespace dial9::internal {
namespace {

struct Close {
  void operator()(DIR* listing) const {
    set_fork_fd(ForkFd::kDirectory, -1);
    ::closedir(listing);
  }
};

}  // namespace

Result<std::vector<std::string>> names_in(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return os_error(errno, "look into", directory);
  set_fork_fd(ForkFd::kDirectory, fd);
  const std::unique_ptr<DIR, Close> listing(::fdopendir(fd));
  if (listing == nullptr) {
    const int error = errno;
    set_fork_fd(ForkFd::kDirectory, -1);
    const UniqueFd closed(fd);
    return os_error(error, "look into", directory);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr && errno != 0) return os_error(errno, "look into", directory);
    if (entry == nullptr) return names;
    std::string name(entry->d_name);
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
}

}  // namespace dial9::internal
