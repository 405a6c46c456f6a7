// Segment files, the byte budget, eviction: see disk_store.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/disk_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/os_error.h"
#include "recorder/directory_names.h"

namespace dial9::internal {
namespace {

// Of the budget: what may be written before all dead runs are known, and what is kept free for it.
constexpr std::uint64_t kCreditParts = 8'192;
constexpr std::uint64_t kCreditReserveParts = 32;

}  // namespace

DiskStore::DiskStore(RunDirectory& run, const DiskStoreOptions& options)
    : run_(run), options_(options), held_bytes_(options.fixed_bytes) {
  if (options_.removes_dead_runs) dead_.emplace(run_.root(), run_.boot_id(), options_.message);
}

bool DiskStore::look_for_dead_runs() {
  if (!dead_ || dead_->is_known()) return false;
  const bool has_more = dead_->step();
  if (!has_more) keep_within_budget();
  return has_more;
}

// At once: whoever can't go on without.
void DiskStore::know_dead_runs() {
  if (!dead_ || dead_->is_known()) return;
  dead_->know();
  keep_within_budget();
}

// Runs that end before they know of the others wrote on credit. As many of them as are kept take
// less than the part that is left out here.
std::uint64_t DiskStore::budget_bytes() const {
  static_assert(kMostDeadRuns <= kCreditParts / kCreditReserveParts);
  return options_.budget_bytes - (dead_ ? options_.budget_bytes / kCreditReserveParts : 0);
}

bool DiskStore::has_credit(std::uint64_t more_bytes) const {
  return active_bytes_ + more_bytes <= options_.budget_bytes / kCreditParts;
}

bool DiskStore::evict_of_dead_runs(const std::string& spared_run) {
  if (!dead_ || !dead_->remove_oldest(spared_run)) return false;
  ++evicted_;
  return true;
}

void DiskStore::keep_within_budget() {
  const std::uint64_t active = std::max(active_bytes_, reserved_bytes_);
  while (kept_bytes() + active > budget_bytes() && evict_oldest()) {
  }
}

bool DiskStore::make_room(std::uint64_t bytes, const std::string& spared_run) {
  const std::uint64_t active = std::max(active_bytes_, reserved_bytes_);
  const auto has_room = [&] { return kept_bytes() + active + bytes <= budget_bytes(); };
  while (!has_room() && evict_of_dead_runs(spared_run)) {
  }
  return has_room();
}

// The directory is the truth: others compress, move or remove sealed segments.
void DiskStore::rescan() {
  sealed_.clear();
  held_bytes_ = options_.fixed_bytes;
  for (const std::string& name : names_in(run_.path()).value_or(std::vector<std::string>())) {
    std::uint64_t index = 0;
    bool is_active = false;
    struct stat st{};
    const std::string path = run_.path() + "/" + name;
    if (!parse_segment_name(name, &index, &is_active) || ::lstat(path.c_str(), &st) != 0 ||
        (is_active && index == active_index_ && active_)) {
      continue;
    }
    const auto bytes = static_cast<std::uint64_t>(st.st_size);
    held_bytes_ += bytes;
    sealed_.insert_or_assign(index, Sealed{path, bytes});
  }
}

bool DiskStore::evict_oldest() {
  know_dead_runs();  // which is the oldest?
  if (evict_of_dead_runs({})) return true;
  if (sealed_.empty()) return false;
  held_bytes_ -= sealed_.begin()->second.bytes;
  ::unlink(sealed_.begin()->second.path.c_str());
  sealed_.erase(sealed_.begin());
  ++evicted_;
  return true;
}

std::string DiskStore::active_path() const {
  return run_.path() + "/trace." + std::to_string(active_index_) + ".bin.active";
}

Result<void> DiskStore::open(std::uint64_t index, std::uint64_t reserve_bytes) {
  if (auto there = run_.recreate(); !there) return there;
  rescan();
  reserved_bytes_ = reserve_bytes;
  active_index_ = index;
  active_bytes_ = 0;
  // The first one is made at once, whatever lies in the directory: what it may take is bounded.
  if (has_opened_) know_dead_runs();
  if (!dead_ || dead_->is_known()) keep_within_budget();
  has_opened_ = true;
  const std::string path = active_path();
  active_ = GuardedFd::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!active_) return os_error(errno, "create the segment", path);
  active_.move_up();
  return {};
}

int DiskStore::active_fd() {
  (void)active_.regain(active_path(), O_WRONLY);
  return active_.get();
}

Result<void> DiskStore::write_all(std::span<const std::uint8_t> bytes) {
  std::uint64_t done = 0;
  while (done < bytes.size()) {
    const int fd = active_fd();
    if (fd < 0) {
      return make_error(ErrorCode::kNotFound, "the host closed the descriptor of the segment '" +
                                                  active_path() + "', which was moved or removed");
    }
    const ssize_t n = ::pwrite(fd, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(active_bytes_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      if (::ftruncate(active_fd(), static_cast<off_t>(active_bytes_)) != 0) {
        return os_error(error, "write (and then cut back) the segment", active_path());
      }
      return os_error(error, "write the segment", active_path());
    }
    done += static_cast<std::uint64_t>(n);
  }
  active_bytes_ += bytes.size();
  return {};
}

Result<void> DiskStore::append(std::span<const std::uint8_t> bytes) {
  (void)run_.keep_lock();
  if (!has_credit(bytes.size())) know_dead_runs();
  auto written = write_all(bytes);
  // A full disk: the oldest goes for the newest, as in the budget; nobody else's file is touched.
  while (!written && written.error().code == ErrorCode::kNoSpace && evict_oldest()) {
    written = write_all(bytes);
  }
  return written;
}

Result<void> DiskStore::seal() {
  const std::string from = active_path();
  const std::string to = from.substr(0, from.size() - sizeof(".active") + 1);
  const int rc = ::rename(from.c_str(), to.c_str());
  const int error = errno;
  active_.reset();
  held_bytes_ += active_bytes_;
  sealed_.insert_or_assign(active_index_, Sealed{rc == 0 ? to : from, active_bytes_});
  active_bytes_ = 0;
  if (rc != 0) return os_error(error, "seal the segment", from);
  return {};
}

void DiskStore::abandon() {
  if (!active_) return;
  if (active_bytes_ == 0) ::unlink(active_path().c_str());
  active_.reset();
  active_bytes_ = 0;
}

bool DiskStore::is_active_intact() {
  (void)run_.keep_lock();
  struct stat st{};
  return !active_ || (::fstat(active_fd(), &st) == 0 && st.st_nlink > 0);
}

}  // namespace dial9::internal
