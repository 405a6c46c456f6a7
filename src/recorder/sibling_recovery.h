// At a recorder's start: recovers what dead runs left in the same directory, piece by piece between
// the collector's passes. Strongest property: a piece is at most about 1 MiB of work, nothing is
// made beyond the disk budget, and runs whose process lives aren't touched.
// Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "recorder/disk_store.h"
#include "recorder/recovery.h"

namespace dial9::internal {

// step() on the collector's thread, the counts on any.
class SiblingRecovery {
 public:
  // `store` outlives it, and knows of dead runs. Looks at nothing yet. `message` gets a line for
  // each run that was recovered or couldn't be.
  SiblingRecovery(DiskStore& store, std::function<void(const std::string&)> message);

  // One piece: first of finding out what there is, then of a run. False: all is done.
  bool step();
  // Beyond looking: there is something to recover.
  bool is_recovering() const { return current_ != nullptr || !waiting_.empty(); }
  // At the recorder's end: leaves the run that it is at to whoever comes next.
  void leave();

  std::uint64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  std::uint64_t events() const { return events_.load(std::memory_order_relaxed); }
  // Dead runs that went, since there were too many.
  std::uint64_t removed() const { return removed_.load(std::memory_order_relaxed); }

 private:
  void finish_run();

  DiskStore& store_;
  const std::function<void(const std::string&)> message_;
  std::vector<std::string> waiting_;  // oldest last
  std::unique_ptr<RunRecovery> current_;
  bool has_looked_ = false;
  // Counted after the fact: nothing else is published by them.
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint64_t> removed_{0};
};

}  // namespace dial9::internal
