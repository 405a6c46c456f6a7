// What `dial9 doctor` makes of what it saw: one pure function a check, from facts to a verdict with
// what was expected, what was seen, and the cure. Strongest property: what could not be looked at
// is "unknown", never "ok". Spec: docs/guide/on_call.md, "doctor".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor_elf.h"

namespace dial9::cli {

enum class Verdict : std::uint8_t {
  kOk,
  kUnknown,  // could not be looked at; `seen` says why
  kWarning,  // recording works; something else will not, or less well
  kWrong,    // the recorder will not do what it was asked for
};
std::string_view to_string(Verdict verdict);  // "ok", "unknown", "warning", "wrong"

struct Check {
  std::string name;
  Verdict verdict = Verdict::kOk;
  std::string expected;
  std::string seen;
  std::string cure;  // empty where nothing is to be done
};

struct EnvironmentFacts {
  bool is_enabled = false;
  std::vector<std::string> messages;  // of the plan: not understood, unknown, not built in
};
Check check_environment(const EnvironmentFacts& facts);

struct KernelFacts {
  std::string system;   // uname: "Linux"
  std::string release;  // "6.1.0-18-amd64"
  std::string machine;
};
Check check_kernel(const KernelFacts& facts);

struct ClockFacts {
  std::string error;        // the recorder didn't run
  std::string description;  // of the recorder: "tsc", or "kernel: " and why
  bool is_tsc_asked_for = false;
  std::uint64_t readings = 0;
  std::uint64_t worst_error_ns = 0;  // outside the two kernel readings around each
  std::uint64_t backward_steps = 0;
};
Check check_clock(const ClockFacts& facts);

struct DirectoryFacts {
  bool is_memory = false;  // no directory: the memory ring
  std::string path;
  std::string error;        // of making, writing, syncing, renaming, removing a file in it
  std::string file_system;  // "ext4", "tmpfs", ...; or its magic number
  bool is_remote = false;
  int error_number = 0;  // errno of `error`
};
Check check_directory(const DirectoryFacts& facts);

struct SpaceFacts {
  bool is_memory = false;
  std::string error;
  std::uint64_t budget_bytes = 0;
  std::uint64_t arena_bytes = 0;      // of the memory ring: comes on top of its budget
  std::uint64_t held_bytes = 0;       // of earlier runs: in the budget already
  std::uint64_t available_bytes = 0;  // of the file system, or of memory
};
Check check_space(const SpaceFacts& facts);

struct LockFacts {
  bool is_memory = false;
  std::string error;  // the recorder didn't run, or its lock can't be opened
  bool is_exclusive = false;
  // Other recorders that write into the directory now; 0: of another process id namespace.
  std::vector<std::uint32_t> live_pids;
  bool knows_others = true;  // false: the kernel's list of locks can't be matched with files here
};
Check check_lock(const LockFacts& facts);

// What a part was made to record, and what was read back.
struct PartCount {
  std::string part;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  bool is_minimum = false;  // of what the collector samples: `expected` or more
};
struct RecordingFacts {
  std::string error;  // why it didn't start, or couldn't be read back
  std::vector<PartCount> parts;
  std::uint64_t dropped = 0;
  std::string unfinished;  // what stop() left
};
Check check_recording(const RecordingFacts& facts);

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
struct LimitFacts {
  std::uint64_t open_files = kNoLimit;
  std::uint64_t file_bytes = kNoLimit;
  std::uint64_t address_bytes = kNoLimit;
  std::uint64_t locked_bytes = kNoLimit;
  std::uint64_t queued_signals = kNoLimit;
  std::uint64_t needed_file_bytes = 0;     // the largest of segment and arena
  std::uint64_t needed_address_bytes = 0;  // arena, and the memory ring's budget
};
std::vector<Check> check_limits(const LimitFacts& facts);

struct SchedFacts {
  std::string error;  // of reading /proc/self/task/TID/schedstat
  std::uint64_t run_ns = 0;
};
Check check_sched(const SchedFacts& facts);

struct PerfFacts {
  std::optional<int> paranoid;       // absent: no such file
  std::optional<int> kptr_restrict;  // absent: no such file
  int open_error = 0;                // errno of a real perf_event_open; 0: it opened
  bool has_counted = false;          // and its count moved
};
Check check_perf(const PerfFacts& facts);

struct ProgramFacts {
  std::string path;
  std::string error;  // why it can't be read
  ElfFacts elf;
  std::string separate_debug_file;  // found by build id or debug link; empty: none
};
// Frame pointers, debug info, build id.
std::vector<Check> check_program(const ProgramFacts& facts);

struct VerdictCounts {
  std::uint64_t wrong = 0;
  std::uint64_t warnings = 0;
  std::uint64_t unknown = 0;
};
VerdictCounts count_verdicts(const std::vector<Check>& checks);

std::string doctor_text(const std::vector<Check>& checks);
std::string doctor_json(const std::vector<Check>& checks);

}  // namespace dial9::cli
