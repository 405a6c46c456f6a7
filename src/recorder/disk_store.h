// Segments as files of the run directory: `trace.{n}.bin.active` while written, renamed to
// `trace.{n}.bin` when sealed. Strongest property: the recorder's files under the root never exceed
// the budget, counting what dead runs left and a full segment for the active one; a failed write
// leaves no half stream behind. What dead runs left is found out in pieces: until it is known, only
// an 8,192nd of the budget may be written. Spec: docs/spec/recorder.md, "Dead runs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "recorder/dead_runs.h"
#include "recorder/guarded_fd.h"
#include "recorder/run_directory.h"
#include "recorder/segment_store.h"

namespace dial9::internal {

struct DiskStoreOptions {
  std::uint64_t budget_bytes;
  std::uint64_t fixed_bytes;  // the arena's file: in the budget, never evicted
  bool removes_dead_runs;     // false: dead runs are neither counted nor removed
  // Gets a line where there were too many dead runs.
  std::function<void(const std::string&)> message = [](const std::string&) {};
};

class DiskStore : public SegmentStore {
 public:
  // `run` outlives the store. Looks at nothing yet.
  DiskStore(RunDirectory& run, const DiskStoreOptions& options);

  Result<void> open(std::uint64_t index, std::uint64_t reserve_bytes) override;
  Result<void> append(std::span<const std::uint8_t> bytes) override;
  Result<void> seal() override;
  void abandon() override;
  bool is_active_intact() override;
  std::uint64_t bytes_held() const override { return kept_bytes() + active_bytes_; }
  std::uint64_t evicted() const override { return evicted_; }
  std::vector<SegmentBytes> sealed_segments() const override { return {}; }

  // One piece of finding out what dead runs left. False: it is known.
  bool look_for_dead_runs();
  // Null: dead runs are left alone.
  DeadRuns* dead_runs() { return dead_ ? &*dead_ : nullptr; }
  // Makes room for so many bytes more in the budget, besides the active segment's, by removing the
  // oldest files of dead runs other than `spared_run`. False: there is none.
  bool make_room(std::uint64_t bytes, const std::string& spared_run);

 private:
  struct Sealed {
    std::string path;
    std::uint64_t bytes;
  };
  void rescan();
  void know_dead_runs();
  bool evict_oldest();
  bool evict_of_dead_runs(const std::string& spared_run);
  void keep_within_budget();
  std::uint64_t budget_bytes() const;
  bool has_credit(std::uint64_t more_bytes) const;
  std::uint64_t kept_bytes() const { return held_bytes_ + (dead_ ? dead_->bytes() : 0); }
  std::string active_path() const;
  // Of the active segment; opened again if the host closed it. -1: it is gone.
  int active_fd();
  Result<void> write_all(std::span<const std::uint8_t> bytes);

  RunDirectory& run_;
  const DiskStoreOptions options_;
  std::optional<DeadRuns> dead_;
  std::map<std::uint64_t, Sealed> sealed_;  // of this run, by index
  std::uint64_t held_bytes_ = 0;            // sealed_ and the fixed part
  bool has_opened_ = false;
  GuardedFd active_;
  std::uint64_t reserved_bytes_ = 0;  // for the active segment
  std::uint64_t active_index_ = 0;
  std::uint64_t active_bytes_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace dial9::internal
