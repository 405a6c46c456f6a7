// Where an arena's bytes come from: a file, or the memory of a living process: see arena_reader.h.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string_view>

#include "base/os_error.h"
#include "recorder/arena_reader.h"
#include "recorder/run_directory.h"

namespace dial9::internal {
namespace {

class FileBytes : public ArenaBytes {
 public:
  FileBytes(GuardedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  std::uint64_t size() const override {
    struct stat st{};
    (void)fd_.regain(path_, O_RDONLY);
    return ::fstat(fd_.get(), &st) == 0 ? static_cast<std::uint64_t>(st.st_size) : 0;
  }
  bool read(std::uint64_t offset, std::span<std::uint8_t> to) const override {
    std::size_t done = 0;
    while (done < to.size()) {
      if (!fd_.regain(path_, O_RDONLY)) return false;
      const ssize_t n =
          ::pread(fd_.get(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      has_failed_ = has_failed_ || n < 0;
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }

  bool has_failed() const override { return has_failed_; }

 private:
  mutable GuardedFd fd_;  // a host that closes it changes nothing of what is read
  const std::string path_;
  mutable bool has_failed_ = false;
};

class ProcessBytes : public ArenaBytes {
 public:
  ProcessBytes(pid_t pid, std::uint64_t begin, std::uint64_t size)
      : pid_(pid), begin_(begin), size_(size) {}
  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t offset, std::span<std::uint8_t> to) const override {
    if (offset > size_ || to.size() > size_ - offset) return false;
    const iovec local{to.data(), to.size()};
    const iovec remote{reinterpret_cast<void*>(begin_ + offset), to.size()};
    const ssize_t n = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
    if (n < 0) error_ = errno;
    return n == static_cast<ssize_t>(to.size());
  }
  bool has_failed() const override { return error_ != 0; }
  ErrorCode failure() const override { return error_code_of(error_); }

 private:
  const pid_t pid_;
  const std::uint64_t begin_;
  const std::uint64_t size_;
  mutable int error_ = 0;  // of the last read that failed
};

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t inode = 0;
  std::string name;
};

bool is_arena_name(std::string_view name) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  return name.ends_with(std::string("/") + kArenaName) || name == "/memfd:dial9-thread-buffers" ||
         (name.starts_with("[anon") && name.find("dial9-thread-buffers") != name.npos);
}

// begin-end perms offset device inode   name
bool parse_mapping(const std::string& line, Mapping* out) {
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, out->begin, 16);
  if (first.ec != std::errc() || first.ptr == end) return false;
  if (std::from_chars(first.ptr + 1, end, out->end, 16).ec != std::errc()) return false;
  std::size_t at = 0;
  for (int field = 0; field < 4; ++field) {
    at = line.find(' ', at);
    if (at == std::string::npos) return false;
    at = line.find_first_not_of(' ', at);
    if (at == std::string::npos) return false;
  }
  (void)std::from_chars(line.data() + at, end, out->inode);
  at = line.find(' ', at);
  if (at == std::string::npos) return false;
  at = line.find_first_not_of(' ', at);
  if (at == std::string::npos) return false;
  out->name = line.substr(at);
  return out->end > out->begin && is_arena_name(out->name);
}

std::string hex(std::uint64_t value) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, value, 16);
  return {text, end.ptr};
}

// The mapping's own file if that may be opened; else the file of its name if it is the same one;
// else the memory.
std::unique_ptr<ArenaBytes> bytes_of_mapping(pid_t pid, const Mapping& mapping) {
  const std::string proc = "/proc/" + std::to_string(pid);
  for (const std::string& path :
       {proc + "/map_files/" + hex(mapping.begin) + "-" + hex(mapping.end),
        proc + "/root" + mapping.name}) {
    GuardedFd fd = GuardedFd::open(path, O_RDONLY | O_NONBLOCK);
    struct stat st{};
    if (fd && ::fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode) &&
        static_cast<std::uint64_t>(st.st_ino) == mapping.inode) {
      return std::make_unique<FileBytes>(std::move(fd), path);
    }
  }
  return std::make_unique<ProcessBytes>(pid, mapping.begin, mapping.end - mapping.begin);
}

// Of two that the process has mapped.
bool is_better(const ArenaReader& a, const ArenaReader& b) {
  const bool runs = a.stopped_ns() == 0;
  if (runs != (b.stopped_ns() == 0)) return runs;
  return a.identity().started_ns > b.identity().started_ns;
}

}  // namespace

Result<ArenaReader> ArenaReader::open_fd(GuardedFd fd, const std::string& name) {
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return os_error(errno, "look at", name);
  if (!S_ISREG(st.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "'" + name + "' is no regular file; name a file of thread buffers");
  }
  return from(std::make_unique<FileBytes>(std::move(fd), name));
}

Result<ArenaReader> ArenaReader::open(const std::string& path) {
  GuardedFd fd = GuardedFd::open(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return os_error(errno, "open the thread buffers", path);
  return open_fd(std::move(fd), path);
}

Result<void> ArenaReader::mark_recovered(const std::string& path,
                                         const JournalRecovery& mark) const {
  const GuardedFd fd = GuardedFd::open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return os_error(errno, "mark as recovered", path);
  // The index first: the state makes it count.
  const std::uint64_t at = journal_offset_ + offsetof(JournalPage, recovery);
  constexpr std::uint64_t kState = offsetof(JournalRecovery, state);
  constexpr std::uint64_t kIndex = offsetof(JournalRecovery, index);
  if (::pwrite(fd.get(), &mark.index, sizeof mark.index, static_cast<off_t>(at + kIndex)) !=
          sizeof mark.index ||
      ::pwrite(fd.get(), &mark.state, sizeof mark.state, static_cast<off_t>(at + kState)) !=
          sizeof mark.state) {
    return os_error(errno, "mark as recovered", path);
  }
  return {};
}

Result<ArenaReader> ArenaReader::open_process(pid_t pid, std::vector<ArenaIdentity>* others) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  std::ifstream maps(path);
  if (!maps) {
    return os_error(errno, "read", path, "the process is gone, or belongs to another user");
  }
  Result<ArenaReader> best = make_error(
      ErrorCode::kNotFound, "process " + std::to_string(pid) +
                                " has no thread buffers of dial9 mapped: no recorder runs "
                                "in it, or it keeps them in unnamed memory");
  std::vector<ArenaIdentity> running;
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    if (!parse_mapping(line, &mapping)) continue;
    auto reader = from(bytes_of_mapping(pid, mapping));
    if (!reader) {
      if (!best) best = std::move(reader);
      continue;
    }
    if (reader->stopped_ns() == 0) running.push_back(reader->identity());
    // An earlier recorder of the process may still be mapped, as long as its threads live.
    if (!best || is_better(*reader, *best)) best = std::move(reader);
  }
  if (best && others != nullptr) {
    std::erase_if(running, [&](const ArenaIdentity& one) {
      return one.pid != best->identity().pid || one.boot_id == best->identity().boot_id;
    });
    *others = std::move(running);
  }
  return best;
}

}  // namespace dial9::internal
