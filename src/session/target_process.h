// A look into another process's recorder, with no help from it: it may be hung, stopped or busy.
// Strongest property: what is handed on fits together: no event is missing between the segments and
// the thread buffers and none is in both, or the look says that it couldn't get one that fits. The
// process isn't stopped, traced or written to. Spec: docs/spec/snapshot.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/kernel_threads.h"

namespace dial9::internal {

struct TargetLoss {
  std::string cause;
  std::uint64_t count = 0;
  std::uint64_t first_ns = 0;  // 0: not known when
  std::uint64_t last_ns = 0;
};

struct TargetBytes {
  std::string name;
  std::vector<std::uint8_t> bytes;  // whole streams
};

struct TargetLook {
  KernelProcess kernel;
  std::string boot_id;
  std::string run_directory;  // as the process names it; empty: it keeps its segments in memory
  std::uint64_t recorder_started_ns = 0;
  std::uint64_t now_ns = 0;       // CLOCK_MONOTONIC, when the look began
  std::uint64_t realtime_ns = 0;  // of the same moment

  // Streams, oldest first: segments of the run directory where asked for, then the chunks.
  std::vector<TargetBytes> parts;
  bool has_segments = false;   // parts begin with segments; chunks hold only what is in none
  bool has_whole_run = false;  // from its first segment on
  bool is_join_exact = true;   // segments and chunks fit together
  // Of the chunks alone (no segments): after this no record of any thread is missing.
  std::uint64_t chunks_complete_since_ns = 0;
  std::vector<TargetLoss> losses;  // that no part tells of
  std::uint64_t events_unreadable = 0;
  std::uint64_t off_since_ns = 0;  // recording is off since then; 0: it is on
  std::uint64_t stopped_ns = 0;    // its recorder was stopped then; 0: it runs
  std::uint64_t chunks_in_use = 0;
  std::uint64_t chunks_total = 0;
  std::vector<std::string> notes;  // what a reader should know, one line each
};

class TargetProcess {
 public:
  // Errors: kNotFound (no such process; no recorder in it), kPermission; each names the cure.
  static Result<TargetProcess> open(std::uint32_t pid);
  TargetProcess(TargetProcess&&) noexcept;
  TargetProcess& operator=(TargetProcess&&) noexcept;
  ~TargetProcess();

  // `history_bytes`: segments are taken, newest first, up to so many bytes; 0: none. Follows the
  // process to another recorder that it has started meanwhile.
  // Errors: kNotFound (the process ended, and nothing could be read; or it has no recorder any
  // more, for it executed another program), kIo.
  Result<TargetLook> look(std::uint64_t history_bytes);

 private:
  struct State;
  explicit TargetProcess(std::unique_ptr<State> state);
  Result<TargetLook> look_once(std::uint64_t history_bytes);
  std::unique_ptr<State> state_;
};

// The directory of the run whose thread buffers are mapped, in the text of /proc/PID/maps; empty:
// they are in no file. The file may be gone: its directory may have segments all the same.
std::string run_directory_in_maps(const std::string& maps, const std::string& boot_id);

}  // namespace dial9::internal
