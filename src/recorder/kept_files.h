// Kernel files that a source reads again and again: kept open, since a read is then five times
// cheaper. Strongest property: at most kMostKeptFiles descriptors, and a 32nd of RLIMIT_NOFILE, all
// CLOEXEC and with high numbers; they are closed while nothing is recorded and in the child of a
// fork, and opened again when they are next read.
// Spec: docs/spec/recorder.md, "Politeness".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::uint32_t slot_plus_one_ = 0;  // 0: none
  std::uint32_t generation_ = 0;     // of all files, when it was opened
};

// Descriptors kept now.
std::size_t kept_files_open() noexcept;
// Closes all. Async-signal-safe; also in the child of a fork, whose parent keeps its own.
void close_kept_files() noexcept;

}  // namespace dial9::internal
