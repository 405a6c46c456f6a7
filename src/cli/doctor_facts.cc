// See doctor_facts.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_facts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/unique_fd.h"
#include "base/whole_file.h"
#include "storage/trace_files.h"

namespace dial9::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;

std::string read_text(const std::string& path) { return read_whole_file(path).value_or(""); }

struct FileSystem {
  unsigned long magic;
  const char* name;
  bool is_remote;
};
// NFS, SMB and the like by their numbers in linux/magic.h and statfs(2).
constexpr FileSystem kFileSystems[] = {
    {EXT4_SUPER_MAGIC, "ext4", false},
    {TMPFS_MAGIC, "tmpfs", false},
    {0x58465342, "xfs", false},
    {BTRFS_SUPER_MAGIC, "btrfs", false},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs", false},
    {0x2FC12FC1, "zfs", false},
    {F2FS_SUPER_MAGIC, "f2fs", false},
    {NFS_SUPER_MAGIC, "nfs", true},
    {0xFF534D42, "cifs", true},
    {0xFE534D42, "smb2", true},
    {0x01021997, "9p", true},
    {0x65735546, "fuse", true},
    {0x00C36400, "ceph", true},
};

std::string what_failed(const char* action, const std::string& path, int* number = nullptr) {
  const int error = errno;
  if (number != nullptr) *number = error;
  return std::string("can't ") + action + " '" + path + "': " + std::strerror(error);
}

// Makes, writes, syncs, renames and removes a file. Empty: all of it worked.
std::string try_files(const std::string& directory, int* number) {
  const std::string path = directory + "/trial";
  const std::string other = directory + "/trial.renamed";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return what_failed("create", path, number);
  if (::write(fd.get(), path.data(), path.size()) != static_cast<ssize_t>(path.size())) {
    return what_failed("write", path, number);
  }
  if (::fsync(fd.get()) != 0) return what_failed("sync", path, number);
  if (::rename(path.c_str(), other.c_str()) != 0) return what_failed("rename", path, number);
  if (::unlink(other.c_str()) != 0) return what_failed("remove", other, number);
  return {};
}

std::uint64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return limit.rlim_cur;
}

std::uint64_t segment_bytes(const RecorderOptions& options) {
  return options.segment_bytes != 0 ? options.segment_bytes
                                    : std::min(100 * kMiB, options.budget_bytes / 4);
}

// What a group and those around it leave, of each what its two files say. `leaf` is the process's
// own below `root`.
void take_left(const std::string& root, const std::string& leaf, const char* most_name,
               const char* used_name, std::optional<std::uint64_t>& available) {
  for (fs::path group = leaf;; group = group.parent_path()) {
    const std::string most = read_text(root + group.string() + "/" + most_name);
    const std::string used = read_text(root + group.string() + "/" + used_name);
    if (!most.empty() && !most.starts_with("max") && !used.empty()) {
      const std::uint64_t limit = std::strtoull(most.c_str(), nullptr, 10);
      const std::uint64_t taken = std::strtoull(used.c_str(), nullptr, 10);
      const std::uint64_t left = limit > taken ? limit - taken : 0;
      available = std::min(available.value_or(left), left);
    }
    if (group == group.parent_path()) return;
  }
}

}  // namespace

// "4:memory:/a" of version 1, "0::/a" of version 2.
std::optional<std::uint64_t> available_memory(const std::string& root) {
  std::optional<std::uint64_t> available;
  std::istringstream lines(read_text(root + "/proc/meminfo"));
  for (std::string line; std::getline(lines, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu", &kib) == 1) available = kib * 1024;
  }
  std::istringstream groups(read_text(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(":/", first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      take_left(root + "/sys/fs/cgroup", group, "memory.max", "memory.current", available);
    } else if (controllers.find(",memory,") != std::string::npos) {
      take_left(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                "memory.usage_in_bytes", available);
    }
  }
  return available;
}

namespace {

std::string find_debug_file(const std::string& path, const ElfFacts& elf) {
  std::vector<std::string> candidates;
  if (elf.build_id.size() > 2) {
    candidates.push_back("/usr/lib/debug/.build-id/" + elf.build_id.substr(0, 2) + "/" +
                         elf.build_id.substr(2) + ".debug");
  }
  if (!elf.debug_link.empty()) {
    const std::string directory = fs::path(path).parent_path().string();
    candidates.push_back(directory + "/" + elf.debug_link);
    candidates.push_back(directory + "/.debug/" + elf.debug_link);
    candidates.push_back("/usr/lib/debug" + directory + "/" + elf.debug_link);
  }
  for (const std::string& candidate : candidates) {
    if (::access(candidate.c_str(), R_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace

KernelFacts look_at_kernel() {
  utsname name{};
  ::uname(&name);
  return {name.sysname, name.release, name.machine};
}

TrialDirectory::TrialDirectory(const std::string& directory) {
  if (directory.empty()) return;
  std::error_code error;
  const fs::path root = fs::absolute(directory, error);
  std::vector<fs::path> missing;
  for (fs::path at = root; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (::mkdir(at->c_str(), 0755) != 0) {
      error_ = what_failed("make the directory", at->string(), &error_number_);
      return;
    }
    made_.push_back(at->string());
  }
  std::string pattern = root.string() + "/.dial9-doctor-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    error_ = what_failed("make a directory in", root.string(), &error_number_);
    return;
  }
  path_ = pattern;
}

TrialDirectory::~TrialDirectory() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  for (auto at = made_.rbegin(); at != made_.rend(); ++at) ::rmdir(at->c_str());
}

DirectoryFacts look_at_directory(const std::string& directory, const TrialDirectory& trial) {
  DirectoryFacts facts;
  facts.is_memory = directory.empty();
  facts.path = directory;
  if (facts.is_memory) return facts;
  facts.error = trial.error();
  facts.error_number = trial.error_number();
  if (facts.error.empty()) facts.error = try_files(trial.path(), &facts.error_number);
  if (!facts.error.empty()) return facts;
  struct statfs fs_facts{};
  if (::statfs(trial.path().c_str(), &fs_facts) != 0) {
    facts.error = what_failed("look at", directory, &facts.error_number);
    return facts;
  }
  const auto magic = static_cast<unsigned long>(fs_facts.f_type) & 0xFFFF'FFFFUL;
  std::ostringstream number;
  number << "file system 0x" << std::hex << magic;
  facts.file_system = number.str();
  for (const FileSystem& known : kFileSystems) {
    if (known.magic != magic) continue;
    facts.file_system = known.name;
    facts.is_remote = known.is_remote;
  }
  return facts;
}

SpaceFacts look_at_space(const RecorderOptions& options, const TrialDirectory& trial) {
  SpaceFacts facts;
  facts.is_memory = options.directory.empty();
  facts.budget_bytes = options.budget_bytes;
  facts.arena_bytes = options.arena_bytes;
  if (facts.is_memory) {
    const auto available = available_memory("");
    if (!available) facts.error = "/proc/meminfo can't be read";
    facts.available_bytes = available.value_or(0);
    return facts;
  }
  struct statvfs disk{};
  if (trial.path().empty() || ::statvfs(trial.path().c_str(), &disk) != 0) {
    facts.error = trial.error().empty() ? what_failed("look at", options.directory) : trial.error();
    return facts;
  }
  facts.available_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (const auto runs = storage::list_runs(options.directory)) {
    for (const storage::RunInfo& run : *runs) facts.held_bytes += run.size_bytes;
  }
  return facts;
}

LimitFacts look_at_limits(const RecorderOptions& options) {
  LimitFacts facts;
  facts.open_files = limit_of(RLIMIT_NOFILE);
  facts.file_bytes = limit_of(RLIMIT_FSIZE);
  facts.address_bytes = limit_of(RLIMIT_AS);
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK);
  facts.queued_signals = limit_of(RLIMIT_SIGPENDING);
  const bool is_memory = options.directory.empty();
  // The arena's file is in memory then, but the limit of file sizes holds for it too.
  facts.needed_file_bytes =
      std::max(is_memory ? 0 : segment_bytes(options), options.arena_bytes + kMiB);
  facts.needed_address_bytes = options.arena_bytes + (is_memory ? options.budget_bytes : 0);
  return facts;
}

SchedFacts look_at_sched() {
  SchedFacts facts;
  const std::string path = "/proc/self/task/" + std::to_string(::gettid()) + "/schedstat";
  const std::string text = read_text(path);
  if (text.empty()) facts.error = "can't read " + path;
  facts.run_ns = std::strtoull(text.c_str(), nullptr, 10);
  return facts;
}

ProgramFacts look_at_program(const std::string& program) {
  ProgramFacts facts;
  const bool is_pid = !program.empty() && std::all_of(program.begin(), program.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  const std::string path = program.empty() ? "/proc/self/exe"
                           : is_pid        ? "/proc/" + program + "/exe"
                                           : program;
  std::error_code ignored;
  const fs::path target = fs::read_symlink(path, ignored);
  facts.path = ignored ? path : target.string();
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat file{};
  if (!fd || ::fstat(fd.get(), &file) != 0) {
    facts.error = what_failed("read", path) +
                  (errno == EACCES ? "; run it as that process's user or as root" : "");
    return facts;
  }
  if (!S_ISREG(file.st_mode) || file.st_size == 0) {
    facts.error = "'" + path + "' is no program";
    return facts;
  }
  const auto size = static_cast<std::size_t>(file.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) {
    facts.error = what_failed("map", path);
    return facts;
  }
  const auto elf = read_elf({static_cast<const std::uint8_t*>(bytes), size});
  if (elf) {
    facts.elf = *elf;
    facts.separate_debug_file = find_debug_file(facts.path, *elf);
  } else {
    facts.error = "'" + facts.path + "': " + elf.error().message;
  }
  ::munmap(bytes, size);
  return facts;
}

HeldLock parse_lock_line(std::string_view line) {
  HeldLock lock;
  int pid = 0;
  unsigned long long major = 0;
  unsigned long long minor = 0;
  unsigned long long inode = 0;
  char type[16] = {};
  const std::string text(line);
  if (std::sscanf(text.c_str(), "%*[^:]: %15s %*s %*s %d %llx:%llx:%llu", type, &pid, &major,
                  &minor, &inode) != 5) {
    return lock;
  }
  lock.is_flock = std::strcmp(type, "FLOCK") == 0;
  lock.pid = pid > 0 ? static_cast<std::uint32_t>(pid) : 0;
  lock.device_major = major;
  lock.device_minor = minor;
  lock.inode = inode;
  return lock;
}

LiveRecorders match_locks(const std::string& text, const std::vector<LockedFile>& files,
                          const std::optional<LockedFile>& own) {
  LiveRecorders out;
  bool is_own_there = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const HeldLock held = parse_lock_line(line);
    const auto is_it = [&](const LockedFile& file) {
      return held.is_flock && held.inode == file.inode && held.device_major == file.device_major &&
             held.device_minor == file.device_minor;
    };
    is_own_there = is_own_there || (own && is_it(*own));
    if (std::any_of(files.begin(), files.end(), is_it)) out.pids.push_back(held.pid);
  }
  std::sort(out.pids.begin(), out.pids.end());
  out.is_known = files.empty() || is_own_there;
  return out;
}

LiveRecorders find_live_recorders(const std::string& directory, const TrialDirectory& trial) {
  const auto name_of = [](const struct stat& file) {
    return LockedFile{major(file.st_dev), minor(file.st_dev), file.st_ino};
  };
  struct stat file{};
  std::vector<LockedFile> files;
  std::error_code error;
  for (const auto& run : fs::directory_iterator(directory, error)) {
    if (::stat((run.path() / ".lock").c_str(), &file) == 0) files.push_back(name_of(file));
  }
  std::optional<LockedFile> own;
  const std::string path = trial.path() + "/.doctor-lock";
  const UniqueFd fd(trial.path().empty()
                        ? -1
                        : ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(fd.get(), &file) == 0) {
    own = name_of(file);
  }
  LiveRecorders out = match_locks(read_text("/proc/locks"), files, own);
  if (fd) ::unlink(path.c_str());
  return out;
}

}  // namespace dial9::cli
