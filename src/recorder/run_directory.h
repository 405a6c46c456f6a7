// The directory of one run, `{root}/{boot_id}/`, and the lock that says its process lives.
// Strongest property: a directory is touched only by the process that holds its lock, or, once that
// process is dead, by whoever takes the lock over. Spec: docs/spec/events.md, "Files and objects".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recorder/guarded_fd.h"

namespace dial9::internal {

inline constexpr char kLockName[] = ".lock";
inline constexpr char kArenaName[] = "thread-buffers.d9";
// Buffers of which nothing can be read, after a recovery: kept for people.
inline constexpr char kDamagedArenaName[] = "thread-buffers.d9.damaged";
// Behind the name of a segment that a recovery is making.
inline constexpr char kRecoveringSuffix[] = ".recovering";

// Four random lowercase letters, '-', the process id.
std::string make_boot_id();
bool is_boot_id(const std::string& name);
// True if the directory is a run's beyond doubt: named like one, with a lock that has the process
// id of its name; or with a file in it that is ours by its name and by its first bytes. Everything
// else is somebody's, and not touched.
bool is_run(const std::string& path);
// True if the file is one of ours: by its first bytes, or because it has none.
bool is_our_file(const std::string& path);
// True if the path is a directory, and no link to one.
bool is_real_directory(const std::string& path);

class RunDirectory {
 public:
  // Makes root and run directory and takes the lock. kAlreadyExists, naming the holder, if another
  // process has it.
  static Result<RunDirectory> create(const std::string& root, const std::string& boot_id);

  const std::string& root() const { return root_; }
  const std::string& path() const { return path_; }
  const std::string& boot_id() const { return boot_id_; }

  // After the host closed the lock's descriptor: opens and takes it again. False: it can't now.
  // The first call gives it a number out of the host's way.
  bool keep_lock();
  // After someone removed it: makes it and its lock again.
  Result<void> recreate();
  // Removes lock and directory if nothing else is in it. At the end of a run.
  void remove_if_empty();

 private:
  RunDirectory(std::string root, std::string boot_id);
  Result<void> make_and_lock();
  void move_lock_up();

  std::string root_;
  std::string boot_id_;
  std::string path_;
  GuardedFd lock_;
  bool is_out_of_the_way_ = false;  // the lock's number
};

// Takes over the lock of the dead run at `path`. kAlreadyExists, naming the holder, if its process
// lives, or another one recovers it.
Result<GuardedFd> lock_dead_run(const std::string& path);

// A file that a dead run left behind.
struct LeftFile {
  std::string path;
  std::uint64_t bytes;
  std::int64_t modified_ns;
};

// What a dead run left: the recorder's files in it, in no order.
struct DeadRun {
  std::vector<LeftFile> files;
  bool has_leftovers = false;  // what a run leaves only by being killed
};

// Nothing for a run whose process lives, and for what is no run. One with nothing in it is removed.
// About 20 system calls, and 6 a file.
std::optional<DeadRun> look_at_dead_run(const std::string& path);

// Removes the recorder's files in a dead run, and itself if that was all. False: it isn't one, or
// holds nothing of ours.
bool remove_dead_run(const std::string& path);

// Removes the file, and its run's lock and directory if that was the last one.
void remove_left_file(const LeftFile& file);

// `trace.{n}.bin` and what becomes of it (`.active`, `.gz`, `.partial`, `.recovering`): its index.
// False: not one.
bool parse_segment_name(const std::string& name, std::uint64_t* index, bool* is_active);

}  // namespace dial9::internal
