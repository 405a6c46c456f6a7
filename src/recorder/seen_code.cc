// See seen_code.h. What a child of a fork inherits may be half written: it is its parent's, by pid.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/seen_code.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>

#include "recorder/fork_child.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kMostAddresses = 4096;
constexpr std::size_t kPlaces = 1024;

struct Seen {
  bool is_own() const noexcept {
    return process != 0 ? process == process_number() : pid == ::getpid();
  }

  const pid_t pid = ::getpid();
  // Spares a system call a stack where every child is noticed by it; 0: it isn't.
  const std::uint32_t process = is_fork_page_wiped() ? process_number() : 0;
  std::atomic_flag is_taken{};                // nobody waits for it
  std::array<std::uint64_t, kPlaces> last{};  // by a hash: the same again is passed over
  std::vector<std::uint64_t> addresses;
};

// One a process: the child of a fork leaves its parent's.
constinit std::atomic<Seen*> g_seen{nullptr};
constinit std::atomic<bool> g_is_wanted{false};

std::size_t place_of(std::uint64_t address) {
  return static_cast<std::size_t>((address * 0x9e37'79b9'7f4a'7c15) >> 54);
}

// Null where somebody else has it.
class Hold {
 public:
  Hold() noexcept : seen_(g_seen.load(std::memory_order_acquire)) {
    const bool is_own = seen_ != nullptr && seen_->is_own();
    if (!is_own || seen_->is_taken.test_and_set(std::memory_order_acquire)) seen_ = nullptr;
  }
  ~Hold() {
    if (seen_ != nullptr) seen_->is_taken.clear(std::memory_order_release);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  Seen* seen() const { return seen_; }

 private:
  Seen* seen_;
};

}  // namespace

void see_code(std::span<const std::uint64_t> frames, FirstFrame first) noexcept {
  if (!g_is_wanted.load(std::memory_order_relaxed)) return;
  const Hold hold;
  Seen* const seen = hold.seen();
  if (seen == nullptr) return;
  bool is_return = first == FirstFrame::kReturn;
  for (const std::uint64_t frame : frames) {
    const std::uint64_t address = is_return && frame != 0 ? frame - 1 : frame;
    is_return = true;
    std::uint64_t& last = seen->last[place_of(address)];
    if (last == address || seen->addresses.size() == kMostAddresses) continue;
    last = address;
    seen->addresses.push_back(address);
  }
}

void want_seen_code(bool is_wanted) {
  const Seen* const before = g_seen.load(std::memory_order_acquire);
  if (is_wanted && (before == nullptr || !before->is_own())) {
    auto fresh = std::make_unique<Seen>();
    fresh->addresses.reserve(kMostAddresses);
    g_seen.store(fresh.release(), std::memory_order_release);  // the parent's stays
  }
  g_is_wanted.store(is_wanted, std::memory_order_relaxed);
}

std::vector<std::uint64_t> take_seen_code() {
  const Hold hold;
  if (hold.seen() == nullptr || hold.seen()->addresses.empty()) return {};
  std::vector<std::uint64_t> taken = hold.seen()->addresses;
  hold.seen()->addresses.clear();
  hold.seen()->last.fill(0);
  return taken;
}

}  // namespace dial9::internal
