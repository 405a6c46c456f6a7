// The runs that are open: loads one at a time in a thread of its own, tells how far it is, can be
// cancelled, and forgets the least recently used ones over a byte budget. Strongest property: a
// request never waits for a load and never sees half of one.
// Spec: docs/spec/http_api.md, "Runs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analysis/loader.h"
#include "base/result.h"
#include "server/run.h"
#include "server/run_source.h"

namespace dial9::server {

enum class RunState : std::uint8_t { kClosed, kLoading, kReady, kFailed, kCancelled };
std::string_view to_string(RunState state);

struct RunStatus {
  std::string run;
  RunState state = RunState::kClosed;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t events = 0;
  std::uint64_t generation = 0;  // of the loaded run; 0: none
  std::string error;
};

struct StoreOptions {
  // Of loaded runs; the newest is always kept. A run that is being loaded, for which others are
  // forgotten in time, takes up to Loader::kFinishPeak times as much by itself.
  std::size_t budget_bytes = std::size_t{2} << 30;
};

// Thread-safe.
class RunStore {
 public:
  RunStore(std::unique_ptr<RunSource> source, StoreOptions options);
  ~RunStore();  // cancels the load under way
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  std::string root() const { return source_->root(); }
  Result<std::vector<RunInfo>> list() { return source_->list(); }

  // Starts to load, unless it is loading or ready. A run of which a recorder has written more since
  // it was loaded is loaded anew. Errors: kNotFound.
  Result<RunStatus> open(const std::string& run);
  // kNotFound where there is no such run.
  Result<RunStatus> status(const std::string& run);
  // As status() knows it, without a look at the source: kClosed for what was never opened.
  RunState state(const std::string& run);
  // Cancels a load, or forgets a loaded run.
  Result<RunStatus> close(const std::string& run);
  // The loaded run, which counts as used now; nullptr if it isn't ready.
  std::shared_ptr<const Run> get(const std::string& run);
  // Different for each store that ever was: generations begin anew in every process, and a browser
  // remembers replies of earlier ones.
  const std::string& salt() const { return salt_; }
  // Blocks until no load is under way or waiting.
  void wait_idle();

 private:
  struct Entry;
  void work();
  void load(const std::shared_ptr<Entry>& entry);
  void publish(const std::shared_ptr<Entry>& entry, analysis::Trace trace);
  void make_room(const Entry& entry, const analysis::Loader& loader);
  // Forgets others while they and `bytes` are over the budget.
  void evict(const Entry& keep, std::size_t bytes);
  RunStatus status_of(const Entry& entry) const;

  const std::unique_ptr<RunSource> source_;
  const StoreOptions options_;
  const std::string salt_;
  std::mutex mutex_;  // guards all that follows, and the entries
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::deque<std::shared_ptr<Entry>> waiting_;
  bool is_busy_ = false;
  bool is_ending_ = false;
  std::uint64_t last_use_ = 0;
  std::uint64_t last_generation_ = 0;
  std::thread worker_;  // last: starts when the rest is there
};

}  // namespace dial9::server
