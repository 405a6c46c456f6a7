// See dead_runs.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/dead_runs.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/plural.h"
#include "recorder/directory_names.h"

namespace dial9::internal {
namespace {

// 2 MiB of names. What is beyond comes with a later start: this one makes room.
constexpr std::size_t kMostNames = 65'536;
constexpr std::uint64_t kPieceNs = 1'000'000;
constexpr std::uint64_t kEndNs = 5'000'000;
// Of kAge: they take a microsecond each.
constexpr std::size_t kAgesAPiece = 256;
// At a recorder's end no more are looked at.
constexpr int kAgePiecesAtEnd = 4;  // at least
constexpr std::size_t kMostNamesAtEnd = 16'384;

bool is_older(const LeftFile& a, const LeftFile& b) {
  return a.modified_ns != b.modified_ns ? a.modified_ns < b.modified_ns : a.path < b.path;
}

// A guess: another process may have the number by now. Locks decide.
bool may_live(const std::string& boot_id) {
  const long pid = std::strtol(boot_id.c_str() + 5, nullptr, 10);
  return pid > 0 && pid <= INT_MAX && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

}  // namespace

DeadRuns::DeadRuns(std::string root, std::string own_boot_id,
                   std::function<void(const std::string&)> message,
                   std::function<std::uint64_t()> now_ns)
    : root_(std::move(root)),
      own_boot_id_(std::move(own_boot_id)),
      message_(std::move(message)),
      now_ns_(std::move(now_ns)) {}

bool DeadRuns::step() {
  const std::uint64_t end_ns = now_ns_() + kPieceNs;
  if (phase_ == Phase::kList) list(kMostNames);
  switch (phase_) {
    case Phase::kAge:
      age();
      break;
    case Phase::kThin:
      thin(end_ns);
      break;
    case Phase::kLook:
      look(end_ns);
      break;
    case Phase::kList:
    case Phase::kKnown:
      break;
  }
  return phase_ != Phase::kKnown;
}

void DeadRuns::know() {
  if (phase_ == Phase::kList) list(kMostNames);
  if (phase_ == Phase::kAge || phase_ == Phase::kThin) end_thinning();
  if (phase_ == Phase::kLook) look(~std::uint64_t{0});
}

void DeadRuns::list(std::size_t most) {
  names_ = names_in(root_, most).value_or(std::vector<std::string>());
  std::erase_if(names_,
                [&](const std::string& name) { return name == own_boot_id_ || !is_boot_id(name); });
  seen_ = names_.size();
  phase_ = seen_ > kMostDeadRuns ? Phase::kAge : Phase::kLook;
}

// A run's directory is as old as the last file that was made or renamed in it.
void DeadRuns::age() {
  const std::size_t end = std::min(next_ + kAgesAPiece, names_.size());
  for (; next_ < end; ++next_) {
    std::string& name = names_[next_];
    struct stat st{};
    if (may_live(name) || ::lstat(path_of(name).c_str(), &st) != 0) continue;
    by_age_.emplace_back(st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, std::move(name));
    name.clear();
  }
  if (next_ < names_.size()) return;
  std::sort(by_age_.rbegin(), by_age_.rend());
  excess_ = by_age_.size() > kMostDeadRuns ? by_age_.size() - kDeadRunsKept : 0;
  phase_ = Phase::kThin;
}

void DeadRuns::thin(std::uint64_t end_ns) {
  for (bool has_time = true; has_time && excess_ != 0; --excess_) {
    if (remove_dead_run(path_of(by_age_.back().second))) ++runs_removed_;
    by_age_.pop_back();
    has_time = now_ns_() < end_ns;
  }
  if (excess_ == 0) end_thinning();
}

void DeadRuns::end_thinning() {
  std::erase(names_, std::string());
  for (auto& [modified_ns, name] : by_age_) names_.push_back(std::move(name));
  by_age_ = {};
  phase_ = Phase::kLook;
  tell();
}

void DeadRuns::tell() {
  if (runs_removed_ == 0 || is_told_) return;
  is_told_ = true;
  message_("'" + root_ + "' had " + plural(seen_, "run") + "; the " +
           (runs_removed_ == 1 ? "oldest dead one was"
                               : std::to_string(runs_removed_) + " oldest dead ones were") +
           " removed, since at most " + std::to_string(kMostDeadRuns) +
           " are kept (removes_dead_runs off, DIAL9_GC_DEAD_NAMESPACES=0: all)");
}

void DeadRuns::look(std::uint64_t end_ns) {
  for (bool has_time = true; has_time && !names_.empty(); has_time = now_ns_() < end_ns) {
    const std::string run = path_of(names_.back());
    names_.pop_back();
    auto dead = look_at_dead_run(run);
    if (!dead) continue;
    std::int64_t newest_ns = 0;
    for (LeftFile& file : dead->files) {
      newest_ns = std::max(newest_ns, file.modified_ns);
      bytes_ += file.bytes;
      files_.push_back(std::move(file));
    }
    if (dead->has_leftovers) leftovers_.emplace_back(newest_ns, run);
  }
  if (!names_.empty()) return;
  names_ = {};
  std::sort(files_.begin(), files_.end(), is_older);
  std::sort(leftovers_.rbegin(), leftovers_.rend());
  phase_ = Phase::kKnown;
}

void DeadRuns::bound_count() {
  const std::uint64_t end_ns = now_ns_() + kEndNs;
  if (phase_ == Phase::kList) list(kMostNamesAtEnd + 1);
  if (seen_ > kMostNamesAtEnd) return;
  for (int piece = 0; phase_ == Phase::kAge; ++piece) {
    if (piece >= kAgePiecesAtEnd && now_ns_() >= end_ns) break;
    age();
  }
  if (phase_ == Phase::kThin) thin(end_ns);
  tell();
}

std::vector<std::string> DeadRuns::take_leftovers() {
  std::vector<std::string> runs;
  for (auto& [newest_ns, run] : leftovers_) runs.push_back(std::move(run));
  leftovers_ = {};
  return runs;
}

bool DeadRuns::remove_oldest(const std::string& spared_run) {
  const auto at = std::find_if(files_.begin(), files_.end(), [&](const LeftFile& file) {
    return spared_run.empty() || !file.path.starts_with(spared_run + "/");
  });
  if (at == files_.end()) return false;
  bytes_ -= at->bytes;
  remove_left_file(*at);
  files_.erase(at);
  return true;
}

void DeadRuns::look_again(const std::string& run) {
  std::erase_if(files_, [&](const LeftFile& file) {
    const bool is_of_it = file.path.starts_with(run + "/");
    if (is_of_it) bytes_ -= file.bytes;
    return is_of_it;
  });
  const auto dead = look_at_dead_run(run);
  if (!dead) return;
  for (const LeftFile& file : dead->files) {
    bytes_ += file.bytes;
    files_.insert(std::upper_bound(files_.begin(), files_.end(), file, is_older), file);
  }
}

}  // namespace dial9::internal
