// The files that a recovery makes and renames; each call either does its work or says why not, and
// none replaces a file that is there. Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "recorder/guarded_fd.h"

namespace dial9::internal {

// Never over a file that has the new name: kAlreadyExists.
Result<void> rename_to_new(const std::string& from, const std::string& to);

// Cuts `path`.active (open as `fd`) to `bytes` and takes its suffix away; removes it if `bytes` is
// 0.
Result<void> seal_leftover(int fd, const std::string& path, std::uint64_t bytes,
                           std::uint64_t cut_bytes);

// A new file, written from start to end.
class OutputFile {
 public:
  // Over what an earlier attempt left under this name.
  Result<void> create(const std::string& path);
  Result<void> write(std::span<const std::uint8_t> bytes);
  // `syncs`: the disk has it when this returns.
  Result<void> close(bool syncs);
  // Removes it.
  void discard();

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  GuardedFd fd_;
  std::uint64_t bytes_ = 0;
};

}  // namespace dial9::internal
