// See sibling_recovery.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/sibling_recovery.h"

#include <algorithm>

namespace dial9::internal {

SiblingRecovery::SiblingRecovery(const RunDirectory& own, DiskStore& store,
                                 std::function<void(const std::string&)> message)
    : store_(store), message_(std::move(message)) {
  if (auto runs = find_runs(own.root())) waiting_ = std::move(*runs);
  std::erase_if(waiting_, [&](const std::string& path) {
    return path == own.path() || path == own.root() || !has_leftovers(path);
  });
}

void SiblingRecovery::finish_run() {
  const RunReport& report = current_->report();
  const bool is_worth_a_line =
      report.state == RunState::kRecovered || report.state == RunState::kNotFinished;
  if (report.state == RunState::kRecovered) {
    events_.fetch_add(report.events, std::memory_order_relaxed);
    runs_.fetch_add(1, std::memory_order_relaxed);
  }
  if (report.state != RunState::kAlive) has_changed_ = true;
  const std::string line = is_worth_a_line ? describe(report) : std::string();
  current_.reset();  // before the user's callback, which may throw: it is done with
  if (is_worth_a_line) message_(line);
}

void SiblingRecovery::leave() {
  current_.reset();
  waiting_.clear();
}

bool SiblingRecovery::step() {
  if (current_ == nullptr) {
    // Before the next one, too: the budget counts what the last one made.
    if (has_changed_) store_.look_for_dead_runs();
    has_changed_ = false;
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
