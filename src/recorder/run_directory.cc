// Run directories, their locks, and what dead runs left: see run_directory.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/run_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/descriptor_numbers.h"
#include "base/os_error.h"
#include "base/unique_fd.h"
#include "format/wire.h"
#include "recorder/arena.h"
#include "recorder/directory_names.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

std::string holder_of(int fd) {
  char text[32] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  std::string holder(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return holder.empty() ? "an unknown process" : "process " + holder;
}

bool is_digits(const std::string& s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Dead if its lock is free; without a lock, if no process has the id in its name (a run that is
// just being made has a process).
bool is_dead_run(const std::string& path, const std::string& boot_id) {
  const std::string lock_path = path + "/" + kLockName;
  const GuardedFd fd = GuardedFd::open(lock_path, O_RDWR | O_NOFOLLOW);
  if (fd) return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
  if (errno != ENOENT) return false;
  const long pid = std::strtol(boot_id.c_str() + 5, nullptr, 10);
  return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

bool is_recorder_file(const std::string& name) {
  std::uint64_t index = 0;
  bool is_active = false;
  return name == kArenaName || name == kDamagedArenaName ||
         parse_segment_name(name, &index, &is_active);
}

// What a kill leaves.
bool is_leftover(const std::string& name) {
  std::uint64_t index = 0;
  bool is_active = false;
  return name == kArenaName || (parse_segment_name(name, &index, &is_active) && is_active);
}

// The lock's text is the id of its process, and so is the end of the directory's name.
bool has_own_lock(const std::string& path) {
  const std::string boot_id = fs::path(path).filename().string();
  if (!is_boot_id(boot_id)) return false;
  const GuardedFd fd = GuardedFd::open(path + "/" + kLockName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  char text[32] = {};
  const ssize_t n = fd ? ::pread(fd.get(), text, sizeof text - 1, 0) : 0;
  return n > 0 && std::string(text) == boot_id.substr(5) + "\n";
}

void remove_run_if_empty(const std::string& path) {
  const auto names = names_in(path);
  if (!names) return;
  for (const std::string& name : *names) {
    if (name != kLockName) return;
  }
  ::unlink((path + "/" + kLockName).c_str());
  ::rmdir(path.c_str());
}

}  // namespace

std::string make_boot_id() {
  unsigned char random[4] = {};
  if (::getrandom(random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    // No entropy this early in the machine's life: the process id alone tells runs apart.
    for (unsigned char& byte : random) byte = 0;
  }
  std::string id;
  for (const unsigned char byte : random) id.push_back(static_cast<char>('a' + byte % 26));
  return id + "-" + std::to_string(::getpid());
}

bool is_real_directory(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_boot_id(const std::string& name) {
  if (name.size() < 6 || name[4] != '-') return false;
  const bool has_letters =
      std::all_of(name.begin(), name.begin() + 4, [](char c) { return c >= 'a' && c <= 'z'; });
  return has_letters && is_digits(name.substr(5));
}

bool is_our_file(const std::string& path) {
  if (fs::path(path).filename() == kDamagedArenaName) return true;  // only a recovery gives it
  const GuardedFd fd = GuardedFd::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
  if (st.st_size == 0) return true;
  char head[sizeof kArenaMagic] = {};
  const ssize_t n = ::pread(fd.get(), head, sizeof head, 0);
  constexpr char kGzip[] = {'\x1f', '\x8b'};
  const auto begins = [&](const auto& magic) {
    return n >= static_cast<ssize_t>(sizeof magic) && std::memcmp(head, magic, sizeof magic) == 0;
  };
  return begins(format::kMagic) || begins(kArenaMagic) ||
         (path.find(".bin.gz") != std::string::npos && begins(kGzip));
}

bool is_run(const std::string& path) {
  if (!is_real_directory(path)) return false;
  if (has_own_lock(path)) return true;
  for (const std::string& name : names_in(path).value_or(std::vector<std::string>())) {
    std::error_code error;
    const std::string file = path + "/" + name;
    if (is_recorder_file(name) && !fs::is_empty(file, error) && !error && is_our_file(file)) {
      return true;
    }
  }
  return false;
}

bool parse_segment_name(const std::string& name, std::uint64_t* index, bool* is_active) {
  constexpr char kPrefix[] = "trace.";
  if (name.rfind(kPrefix, 0) != 0) return false;
  const std::size_t dot = name.find('.', 6);
  if (dot == std::string::npos || !is_digits(name.substr(6, dot - 6)) || dot > 6 + 18) return false;
  if (name[6] == '0' && dot > 7) return false;  // one name a number: this one we never give
  const std::string rest = name.substr(dot);
  *index = std::strtoull(name.c_str() + 6, nullptr, 10);
  *is_active = rest == ".bin.active";
  return *is_active || rest == ".bin" || rest == ".bin.gz" || rest == ".bin.gz.partial" ||
         rest == std::string(".bin") + kRecoveringSuffix;
}

RunDirectory::RunDirectory(std::string root, std::string boot_id)
    : root_(std::move(root)), boot_id_(std::move(boot_id)), path_(root_ + "/" + boot_id_) {}

Result<RunDirectory> RunDirectory::create(const std::string& root, const std::string& boot_id) {
  RunDirectory run(root, boot_id);
  if (auto made = run.make_and_lock(); !made) return std::unexpected(made.error());
  return run;
}

Result<void> RunDirectory::make_and_lock() {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) {
    return os_error(error.value(), "make the directory", path_,
                    "give a directory that this process may write to");
  }
  const std::string lock_path = path_ + "/" + kLockName;
  GuardedFd fd = GuardedFd::open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
  if (!fd) return os_error(errno, "open the lock", lock_path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return os_error(errno, "lock", lock_path);
    return make_error(ErrorCode::kAlreadyExists, "'" + path_ + "' is in use by " +
                                                     holder_of(fd.get()) +
                                                     "; give each recorder a directory of its own");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // The text only helps whoever is refused; the lock itself holds.
    errno = 0;
  }
  lock_ = std::move(fd);
  is_out_of_the_way_ = false;
  // At once where that takes no time; else it is the collector's to wait.
  if (has_one_thread()) move_lock_up();
  return {};
}

void RunDirectory::move_lock_up() {
  lock_.move_up();
  is_out_of_the_way_ = true;
}

bool RunDirectory::keep_lock() {
  if (!is_out_of_the_way_) move_lock_up();
  if (!lock_.regain(path_ + "/" + kLockName, O_RDWR)) return false;
  // Held already, this is one cheap call; else whoever took the run for dead meanwhile may have it.
  return ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0;
}

Result<void> RunDirectory::recreate() {
  struct stat there{};
  struct stat held{};
  const std::string lock_path = path_ + "/" + kLockName;
  if (keep_lock() && ::stat(lock_path.c_str(), &there) == 0 && ::fstat(lock_.get(), &held) == 0 &&
      there.st_ino == held.st_ino && there.st_dev == held.st_dev) {
    return {};
  }
  return make_and_lock();
}

void RunDirectory::remove_if_empty() { remove_run_if_empty(path_); }

Result<GuardedFd> lock_dead_run(const std::string& path) {
  const std::string boot_id = fs::path(path).filename().string();
  const std::string lock_path = path + "/" + kLockName;
  struct stat there{};
  if (::lstat(lock_path.c_str(), &there) != 0 && errno == ENOENT && is_boot_id(boot_id) &&
      !is_dead_run(path, boot_id)) {
    return make_error(ErrorCode::kAlreadyExists,
                      "'" + path + "' has no lock, and a process has the id in its name");
  }
  GuardedFd fd = GuardedFd::open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (!fd) return os_error(errno, "open the lock", lock_path);
  // Others that look whether the run is dead hold the lock for a moment.
  int rc = -1;
  for (int attempt = 0; attempt < 4 && rc != 0; ++attempt) {
    if (attempt != 0) ::usleep(500);
    rc = ::flock(fd.get(), LOCK_EX | LOCK_NB);
    if (rc != 0 && errno != EWOULDBLOCK) return os_error(errno, "lock", lock_path);
  }
  if (rc != 0) {
    return make_error(ErrorCode::kAlreadyExists,
                      "'" + path + "' is in use by " + holder_of(fd.get()));
  }
  struct stat held{};
  if (::fstat(fd.get(), &held) != 0 || ::lstat(lock_path.c_str(), &there) != 0 ||
      held.st_ino != there.st_ino || held.st_dev != there.st_dev) {
    return make_error(ErrorCode::kNotFound, "'" + path + "' was removed meanwhile");
  }
  return fd;
}

std::optional<DeadRun> look_at_dead_run(const std::string& path) {
  const std::string boot_id = fs::path(path).filename().string();
  if (!is_boot_id(boot_id) || !is_run(path) || !is_dead_run(path, boot_id)) return std::nullopt;
  DeadRun run;
  bool is_empty = true;
  for (const std::string& name : names_in(path).value_or(std::vector<std::string>())) {
    struct stat st{};
    const std::string file = path + "/" + name;
    is_empty = is_empty && name == kLockName;
    run.has_leftovers = run.has_leftovers || is_leftover(name);
    if (!is_recorder_file(name) || !is_our_file(file) || ::lstat(file.c_str(), &st) != 0) continue;
    run.files.push_back({file, static_cast<std::uint64_t>(st.st_size),
                         st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec});
  }
  if (is_empty && has_own_lock(path)) remove_run_if_empty(path);
  return run;
}

bool remove_dead_run(const std::string& path) {
  const auto run = look_at_dead_run(path);
  if (!run) return false;
  for (const LeftFile& file : run->files) ::unlink(file.path.c_str());
  if (has_own_lock(path)) remove_run_if_empty(path);
  return !run->files.empty() || !is_real_directory(path);
}

void remove_left_file(const LeftFile& file) {
  ::unlink(file.path.c_str());
  remove_run_if_empty(fs::path(file.path).parent_path().string());
}

}  // namespace dial9::internal
