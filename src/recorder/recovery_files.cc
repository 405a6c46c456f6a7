// See recovery_files.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recovery_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/os_error.h"
#include "base/plural.h"
#include "recorder/directory_names.h"
#include "recorder/recovery.h"
#include "recorder/run_directory.h"

namespace dial9::internal {
namespace fs = std::filesystem;

Result<void> rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  int error = errno;
  struct stat st{};
  // A file system that can't promise it: the run's lock keeps other recoveries away.
  if (error == EINVAL && ::lstat(to.c_str(), &st) != 0) {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    error = errno;
  }
  return os_error(error, "rename to", to);
}

Result<void> seal_leftover(int fd, const std::string& path, std::uint64_t bytes,
                           std::uint64_t cut_bytes) {
  const std::string active = path + ".active";
  if (bytes == 0) {
    if (::unlink(active.c_str()) == 0) return {};
    return os_error(errno, "remove the empty segment", active);
  }
  if (cut_bytes != 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return os_error(errno, "cut the segment", active);
  }
  return rename_to_new(active, path);
}

Result<void> OutputFile::create(const std::string& path) {
  path_ = path;
  bytes_ = 0;
  ::unlink(path.c_str());
  fd_ = GuardedFd::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!fd_) return os_error(errno, "create", path);
  return {};
}

Result<void> OutputFile::write(std::span<const std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    if (!fd_.regain(path_, O_WRONLY)) return os_error(ENOENT, "write", path_, "recover again");
    const ssize_t n = ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(bytes_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(errno, "write", path_, "make room and recover again");
    done += static_cast<std::size_t>(n);
  }
  bytes_ += done;
  return {};
}

Result<void> OutputFile::close(bool syncs) {
  if (syncs && !fd_.regain(path_, O_WRONLY)) return os_error(ENOENT, "write", path_);
  if (syncs && ::fsync(fd_.get()) != 0) return os_error(errno, "write to the disk", path_);
  fd_.reset();
  return {};
}

void OutputFile::discard() {
  fd_.reset();
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<std::vector<std::string>> find_runs(const std::string& directory) {
  std::vector<std::string> runs;
  auto names = names_in(directory);
  if (!names) {
    names.error().message += "; name a run's directory, or one that holds runs";
    return std::unexpected(names.error());
  }
  if (is_run(directory)) return std::vector<std::string>{directory};
  for (const std::string& name : *names) {
    const std::string path = (fs::path(directory) / name).string();
    if (is_boot_id(name) && is_run(path)) runs.push_back(path);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

std::string describe(const RunReport& report) {
  const auto file = [](const std::string& path) { return fs::path(path).filename().string(); };
  std::string out = report.path + ": ";
  switch (report.state) {
    case RunState::kAlive:
      return out + "its process lives, or another recovers it; not touched";
    case RunState::kNothing:
      out += "nothing to recover";
      break;
    case RunState::kRecovered:
    case RunState::kNotFinished:
      out += report.state != RunState::kRecovered                    ? "not recovered in full"
             : report.has_unknown_loss || report.damaged_events != 0 ? "recovered in part"
                                                                     : "recovered";
      break;
  }
  if (report.is_resumed) {
    out += ", finishing what an earlier recovery had begun";
  } else if (!report.segment.empty()) {
    out +=
        ", " + plural(report.events, "event") + " from thread buffers into " + file(report.segment);
  }
  for (const SealedLeftover& sealed : report.sealed) {
    out += ", sealed " + file(sealed.path);
    if (sealed.cut_bytes != 0) {
      out += " (cut " + plural(sealed.cut_bytes, "byte") + " behind its last whole event)";
    }
    if (sealed.damaged_at) {
      out += " (unreadable from byte " + std::to_string(*sealed.damaged_at) + " on)";
    }
  }
  for (const ArenaLoss& loss : report.lost) {
    out += ", lost " + std::to_string(loss.count - loss.told) + " (" + loss.cause + ")";
  }
  if (report.damaged_events != 0) {
    out += ", lost " + std::to_string(report.damaged_events) + " (damaged)";
  }
  if (report.has_unknown_loss) out += ", lost an unknown number (damaged)";
  for (const Error& problem : report.problems) out += "; " + problem.message;
  return out;
}

}  // namespace dial9::internal
