// What `dial9 doctor` looks at: the world outside the recorder, as facts for doctor_checks.h.
// Strongest property: looking changes nothing that stays. Spec: docs/guide/on_call.md, "doctor".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor_checks.h"
#include "dial9/recorder.h"

namespace dial9::cli {

KernelFacts look_at_kernel();

// A directory for the trial in the user's. Made with what is missing above it; all of that is
// removed again, with everything in the trial's own directory, at the end.
class TrialDirectory {
 public:
  explicit TrialDirectory(const std::string& directory);
  ~TrialDirectory();
  TrialDirectory(const TrialDirectory&) = delete;
  TrialDirectory& operator=(const TrialDirectory&) = delete;
  const std::string& path() const { return path_; }  // empty: see error
  const std::string& error() const { return error_; }
  int error_number() const { return error_number_; }  // its errno

 private:
  std::string path_;
  std::string error_;
  int error_number_ = 0;
  std::vector<std::string> made_;  // directories above it that were not there, topmost first
};

// `trial` is where files are tried out.
DirectoryFacts look_at_directory(const std::string& directory, const TrialDirectory& trial);
SpaceFacts look_at_space(const RecorderOptions& options, const TrialDirectory& trial);
// MemAvailable, and what the cgroup and those around it leave if that is less; of the files below
// `root`, which is empty but in tests. nullopt: neither can be read.
std::optional<std::uint64_t> available_memory(const std::string& root);
LimitFacts look_at_limits(const RecorderOptions& options);
SchedFacts look_at_sched();
PerfFacts look_at_perf();
// `program` is a path or a process id; empty: dial9 itself.
ProgramFacts look_at_program(const std::string& program);
// A line of /proc/locks.
struct HeldLock {
  bool is_flock = false;
  std::uint32_t pid = 0;  // 0: of another pid namespace
  std::uint64_t device_major = 0;
  std::uint64_t device_minor = 0;
  std::uint64_t inode = 0;
};
// What can't be understood has is_flock false.
HeldLock parse_lock_line(std::string_view line);

// A file as /proc/locks names it.
struct LockedFile {
  std::uint64_t device_major = 0;
  std::uint64_t device_minor = 0;
  std::uint64_t inode = 0;
};
struct LiveRecorders {
  bool is_known = true;  // false: `pids` may lack some
  std::vector<std::uint32_t> pids;
};
// Who holds one of `files`, by the text of /proc/locks. `own` is a file beside them whose lock this
// process holds, if it could take one: that it is in the text shows that files can be told there.
LiveRecorders match_locks(const std::string& text, const std::vector<LockedFile>& files,
                          const std::optional<LockedFile>& own);
// Processes that hold the lock of a run in the directory; `trial` lies in it.
LiveRecorders find_live_recorders(const std::string& directory, const TrialDirectory& trial);

}  // namespace dial9::cli
