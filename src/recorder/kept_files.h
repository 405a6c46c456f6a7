// Kernel files that a source reads again and again: kept open, since a read is then five times
// cheaper. Strongest property: at most kMostKeptFiles descriptors, and a 32nd of RLIMIT_NOFILE, all
// CLOEXEC and with high numbers; they are closed while nothing is recorded and in the child of a
// fork, and opened again when they are next read.
// Spec: docs/spec/recorder.md, "Politeness".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace dial9::internal {

inline constexpr std::size_t kMostKeptFiles = 12;

// The collector's thread only.
class KeptFile {
 public:
  explicit KeptFile(std::string path) : path_(std::move(path)) {}
  ~KeptFile();
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  // The whole content, if it fits into `room` bytes at `buffer`; empty: it can't be read. About 1
  // us and what the kernel takes to write it; 5 us more where no place is left.
  std::string_view read(char* buffer, std::size_t room) noexcept;
  // The same for what is read seldom: about 6 us, and keeps no descriptor.
  std::string_view read_and_close(char* buffer, std::size_t room) noexcept;
  // What fstat() says of it, a file or a directory; false: it can't be opened. About 0.5 us.
  bool status(struct stat* status) noexcept;
  // The next read() needs no new descriptor, unless the host closed ours.
  bool is_kept() const noexcept;
  const std::string& path() const { return path_; }

 private:
  // The kept descriptor and what fstat() says of it; -1: none is kept.
  int kept(struct stat* status) noexcept;
  void keep(UniqueFd fd) noexcept;

  std::string path_;
  std::uint32_t slot_plus_one_ = 0;  // 0: none
  std::uint32_t generation_ = 0;     // of all files, when it was opened
};

// Descriptors kept now.
std::size_t kept_files_open() noexcept;
// Closes all. Async-signal-safe; also in the child of a fork, whose parent keeps its own.
void close_kept_files() noexcept;

}  // namespace dial9::internal
