// What dead runs left in a recorder's directory, found out piece by piece on the collector's
// thread. Strongest property: whatever lies in the directory, a piece is about a millisecond of
// work, and making the object is none; no more runs stay than kMostDeadRuns, the oldest go first.
// Runs whose process lives, and what is no run, aren't touched.
// Spec: docs/spec/recorder.md, "Dead runs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "recorder/clock_calibration.h"
#include "recorder/run_directory.h"

namespace dial9::internal {

// Beyond this many the oldest are removed, until kDeadRunsKept are left: so not each of many short
// programs has to find out which is the oldest.
inline constexpr std::size_t kMostDeadRuns = 256;
inline constexpr std::size_t kDeadRunsKept = 224;

// One thread's at a time.
class DeadRuns {
 public:
  // Looks at nothing yet. `message` gets a line where there were too many. `now_ns`: the clock that
  // ends pieces.
  DeadRuns(std::string root, std::string own_boot_id,
           std::function<void(const std::string&)> message,
           std::function<std::uint64_t()> now_ns = kernel_now_ns);

  // One piece: a millisecond, or what one run takes. False: all is known.
  bool step();
  // All at once, for whoever can't go on without; removes none. 30 us a run.
  void know();
  bool is_known() const { return phase_ == Phase::kKnown; }
  // For a recorder that ends before step() was done: where there are too many, at least one goes.
  // At most 5 ms, or what one run takes.
  void bound_count();

  // What is known so far: files of the recorder, in dead runs.
  std::uint64_t bytes() const { return bytes_; }
  // Oldest first, once all is known.
  const std::deque<LeftFile>& files() const { return files_; }
  // Hands out the runs that only a kill leaves so, the oldest last. Once all is known.
  std::vector<std::string> take_leftovers();
  std::uint64_t runs_removed() const { return runs_removed_; }

  // Removes the oldest file that is known, of any run but `spared_run`. False: there is none.
  bool remove_oldest(const std::string& spared_run);
  // Once all is known: after somebody made files of that run, or removed some.
  void look_again(const std::string& run);

 private:
  enum class Phase : std::uint8_t { kList, kAge, kThin, kLook, kKnown };
  void list(std::size_t most);
  void age();
  void thin(std::uint64_t end_ns);
  void end_thinning();
  void look(std::uint64_t end_ns);
  void tell();
  std::string path_of(const std::string& name) const { return root_ + "/" + name; }

  const std::string root_;
  const std::string own_boot_id_;
  const std::function<void(const std::string&)> message_;
  const std::function<std::uint64_t()> now_ns_;
  Phase phase_ = Phase::kList;
  std::vector<std::string> names_;                            // of runs, still to be looked at
  std::size_t next_ = 0;                                      // of names_, in kAge
  std::size_t seen_ = 0;                                      // how many there were
  std::vector<std::pair<std::int64_t, std::string>> by_age_;  // probably dead; the oldest last
  std::size_t excess_ = 0;                                    // of by_age_, to be removed
  std::uint64_t runs_removed_ = 0;
  bool is_told_ = false;
  std::deque<LeftFile> files_;
  std::vector<std::pair<std::int64_t, std::string>> leftovers_;
  std::uint64_t bytes_ = 0;
};

}  // namespace dial9::internal
