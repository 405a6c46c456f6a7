// Segments as files of the run directory: `trace.{n}.bin.active` while written, renamed to
// `trace.{n}.bin` when sealed. Strongest property: the recorder's files under the root never exceed
// the budget, counting what dead runs left and a full segment for the active one; a failed write
// leaves no half stream behind. Spec: docs/spec/events.md, "Files and objects".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include "recorder/guarded_fd.h"
#include "recorder/run_directory.h"
#include "recorder/segment_store.h"

namespace dial9::internal {

struct DiskStoreOptions {
  std::uint64_t budget_bytes;
  std::uint64_t fixed_bytes;  // the arena's file: in the budget, never evicted
  bool removes_dead_runs;     // false: dead runs are neither counted nor removed
};

class DiskStore : public SegmentStore {
 public:
  // `run` outlives the store. Looks for dead runs' files once, here.
  DiskStore(RunDirectory& run, const DiskStoreOptions& options);

  Result<void> open(std::uint64_t index, std::uint64_t reserve_bytes) override;
  Result<void> append(std::span<const std::uint8_t> bytes) override;
  Result<void> seal() override;
  void abandon() override;
  bool is_active_intact() override;
  std::uint64_t bytes_held() const override { return held_bytes_ + active_bytes_; }
  std::uint64_t evicted() const override { return evicted_; }
  std::vector<SegmentBytes> sealed_segments() const override { return {}; }

  // Again, after they were recovered.
  void look_for_dead_runs();
  // Makes room for so many bytes more in the budget, besides the active segment's, by removing the
  // oldest files of dead runs other than `spared_run`. False: there is none.
  bool make_room(std::uint64_t bytes, const std::string& spared_run);

 private:
  struct Sealed {
    std::string path;
    std::uint64_t bytes;
  };
  void rescan();
  bool evict_oldest();
  std::string active_path() const;
  // Of the active segment; opened again if the host closed it. -1: it is gone.
  int active_fd();
  Result<void> write_all(std::span<const std::uint8_t> bytes);

  RunDirectory& run_;
  const DiskStoreOptions options_;
  std::deque<LeftFile> left_;               // of dead runs, oldest first
  std::map<std::uint64_t, Sealed> sealed_;  // of this run, by index
  std::uint64_t held_bytes_ = 0;            // left_, sealed_ and the fixed part
  GuardedFd active_;
  std::uint64_t reserved_bytes_ = 0;  // for the active segment
  std::uint64_t active_index_ = 0;
  std::uint64_t active_bytes_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace dial9::internal
