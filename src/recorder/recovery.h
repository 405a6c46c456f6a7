// What a dead process left, made into ordinary segments: the `.active` one is cut at its last whole
// event and sealed, and what only its thread buffers held becomes a segment of its own. Strongest
// property: every published event is in exactly one segment afterwards, whatever instruction the
// process died at, and whatever instruction an earlier recovery died at. Works in small steps, so
// that a collector can do it between two drains. Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recorder/arena_reader.h"

namespace dial9::internal {

struct RecoveryOptions {
  // Reads `.active` segments to their end even where the journal knows how much of them is whole.
  bool verifies_segments = true;
  // Waits until the disk has the new segment before the thread buffers go: for the machine's death.
  bool syncs = true;
  // Asked with the most that a new segment may take, before it is written; empty: there is room.
  std::function<bool(std::uint64_t bytes)> has_room;
};

enum class RunState : std::uint8_t {
  kAlive,        // its process holds the lock: not touched
  kNothing,      // there was nothing to recover
  kRecovered,    // all that could be read is in sealed segments
  kNotFinished,  // something failed, and is left as it was: `problems`
};

struct SealedLeftover {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t cut_bytes = 0;  // a write that was under way; 0: it was whole
  // From here on nothing can be read. Nothing of what should be there was cut.
  std::optional<std::uint64_t> damaged_at;
};

// What became of one run.
struct RunReport {
  std::string path;
  std::string boot_id;
  RunState state = RunState::kNothing;
  bool is_resumed = false;   // an earlier recovery was nearly done: its counts aren't known
  std::uint32_t pid = 0;     // of the dead process; 0: not known
  std::string segment;       // made from the thread buffers; empty: none was needed
  std::uint64_t events = 0;  // recorded by the process, that are in it
  std::uint64_t bytes = 0;   // of it
  std::vector<SealedLeftover> sealed;  // `.active` ones
  std::vector<ArenaLoss> lost;         // told of in `segment`: `count` less `told` of each
  std::uint64_t damaged_events = 0;    // published, but unreadable: told of as lost, too
  bool has_unknown_loss = false;       // more is lost, nobody knows how much: told of, too
  std::vector<Error> problems;
};

// The runs that `directory` stands for: itself, if it is one, else the run directories in it, by
// name. Errors: kNotFound, kPermission.
Result<std::vector<std::string>> find_runs(const std::string& directory);

// Recovers one run. Not thread-safe. Holds the run's lock from the first step() to the last.
// Memory: 1 MiB, whatever the run's size.
class RunRecovery {
 public:
  RunRecovery(std::string path, RecoveryOptions options);
  ~RunRecovery();
  RunRecovery(const RunRecovery&) = delete;
  RunRecovery& operator=(const RunRecovery&) = delete;

  // One piece of the work: at most about 1 MiB of bytes read or written. False: it is done.
  bool step();
  const RunReport& report() const { return report_; }

 private:
  class Impl;
  RunReport report_;
  std::unique_ptr<Impl> impl_;
};

// The whole of it at once.
RunReport recover_run(const std::string& path, const RecoveryOptions& options);

// One line for people: what became of the run.
std::string describe(const RunReport& report);

}  // namespace dial9::internal
