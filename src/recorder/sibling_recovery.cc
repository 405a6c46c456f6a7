// See sibling_recovery.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/sibling_recovery.h"

namespace dial9::internal {

SiblingRecovery::SiblingRecovery(DiskStore& store, std::function<void(const std::string&)> message)
    : store_(store), message_(std::move(message)) {}

void SiblingRecovery::finish_run() {
  const RunReport& report = current_->report();
  // One that was removed since it was found is nobody's loss.
  const bool is_worth_a_line = report.state == RunState::kRecovered ||
                               (report.state == RunState::kNotFinished && is_run(report.path));
  if (report.state == RunState::kRecovered) {
    events_.fetch_add(report.events, std::memory_order_relaxed);
    runs_.fetch_add(1, std::memory_order_relaxed);
  }
  // The budget counts what was made.
  if (report.state != RunState::kAlive) store_.dead_runs()->look_again(report.path);
  const std::string line = is_worth_a_line ? describe(report) : std::string();
  current_.reset();  // before the user's callback, which may throw: it is done with
  if (is_worth_a_line) message_(line);
}

void SiblingRecovery::leave() {
  store_.dead_runs()->bound_count();
  removed_.store(store_.dead_runs()->runs_removed(), std::memory_order_relaxed);
  current_.reset();
  waiting_.clear();
}

bool SiblingRecovery::step() {
  if (!has_looked_) {
    has_looked_ = !store_.look_for_dead_runs();
    removed_.store(store_.dead_runs()->runs_removed(), std::memory_order_relaxed);
    if (has_looked_) waiting_ = store_.dead_runs()->take_leftovers();
    return !has_looked_ || !waiting_.empty();
  }
  if (current_ == nullptr) {
    if (waiting_.empty()) return false;
    RecoveryOptions options;
    options.verifies_segments = false;
    options.syncs = false;
    options.has_room = [this, path = waiting_.back()](std::uint64_t bytes) {
      return store_.make_room(bytes, path);
    };
    current_ = std::make_unique<RunRecovery>(waiting_.back(), std::move(options));
    waiting_.pop_back();
  }
  if (!current_->step()) finish_run();
  return true;
}

}  // namespace dial9::internal
