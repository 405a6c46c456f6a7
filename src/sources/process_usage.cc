// See process_usage.h; and the source's life: registered once a process, sampled by the collector.
// SPDX-License-Identifier: Apache-2.0
#include "sources/process_usage.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>

#include "base/descriptor_numbers.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "recorder/process_registry.h"

namespace dial9 {
namespace internal {
namespace {

constexpr std::uint64_t kMemoryNs = 1'000'000'000;
// The other one comes each second: nothing that it reads is read in between.
constexpr std::uint64_t kAnothersNs = kMemoryNs + kMemoryNs / 2;
constexpr std::uint64_t kTimedNs = 1'000'000'000;

// The source's period; 0: it isn't there.
constinit std::atomic<std::uint64_t> g_period_ns{0};

// The child of a fork starts anew: its parent may have been in the middle of a sample.
ProcessUsage& usage_of_this_process() {
  struct State {
    pid_t owner = 0;
    std::unique_ptr<ProcessUsage> usage;
  };
  static State* const state = new State;  // never destroyed: the collector may outlive main
  const pid_t self = ::getpid();
  if (state->owner != self) {
    (void)state->usage.release();
    state->usage = std::make_unique<ProcessUsage>();
    state->owner = self;
  }
  return *state->usage;
}

// The source is there as long as this is.
class SourceHold {
 public:
  SourceHold() = default;
  ~SourceHold() {
    if (is_set_) g_period_ns.store(0, std::memory_order_relaxed);
  }
  SourceHold(const SourceHold&) = delete;
  SourceHold& operator=(const SourceHold&) = delete;
  void begin(std::uint64_t period_ns) {
    is_set_ = true;
    g_period_ns.store(period_ns, std::memory_order_relaxed);
  }

 private:
  bool is_set_ = false;
};

}  // namespace

std::uint64_t page_bytes() noexcept {
  static const long bytes = ::sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(bytes);
}

Pages ProcessUsage::read_memory(std::uint64_t now_ns, std::uint64_t again_ns) noexcept {
  next_memory_ns_ = now_ns + again_ns;
  if (!statm_.is_kept() && are_descriptors_few()) return {};
  std::array<char, 128> text;
  return parse_statm(statm_.read(text.data(), text.size()));
}

// What it costs is looked at once a second.
bool ProcessUsage::read_and_time(std::uint64_t now_ns, ProcessResourceUsageEvent* usage) noexcept {
  if (now_ns < next_timed_ns_ && next_timed_ns_ - now_ns <= kTimedNs) return seams_.read(usage);
  next_timed_ns_ = now_ns + kTimedNs;
  const std::uint64_t before_ns = seams_.cost_clock_ns();
  const bool is_read = seams_.read(usage);
  cost_.note(seams_.cost_clock_ns() - before_ns);
  return is_read;
}

void ProcessUsage::record_with(const Pages& pages, std::uint64_t now_ns,
                               std::uint64_t asked_ns) noexcept {
  ProcessResourceUsageEvent usage;
  if (!read_and_time(now_ns, &usage)) return;
  read_ns_ = now_ns;
  if (pages.resident) usage.rss_bytes = *pages.resident * page_bytes();
  if (cost_.period_ns() > asked_ns) usage.period_ns = cost_.period_ns();
  record_at(usage, now_ns);
}

bool ProcessUsage::is_too_soon(std::uint64_t now_ns, std::uint64_t asked_ns) const noexcept {
  const std::uint64_t period_ns = cost_.period_ns();
  if (period_ns <= asked_ns || read_ns_ == 0) return false;
  // Whoever looks once a period may look a little early.
  constexpr std::uint64_t kEarlyShare = 64;
  return now_ns - read_ns_ < period_ns - period_ns / kEarlyShare;
}

void ProcessUsage::sample(std::uint64_t now_ns, std::uint64_t period_ns) noexcept {
  const std::uint64_t lead_ns = cost_.period_ns() > kMemoryNs ? kAnothersNs : period_ns / 2;
  if (ahead_ns_ != 0 && now_ns - ahead_ns_ < lead_ns) return;
  if (is_too_soon(now_ns, period_ns)) return;
  // A clock that starts anew leaves nothing waiting.
  const bool is_due = now_ns >= next_memory_ns_ || next_memory_ns_ - now_ns > 2 * kMemoryNs;
  record_with(is_due ? read_memory(now_ns, kMemoryNs) : Pages(), now_ns, period_ns);
}

Pages ProcessUsage::sample_for_another(std::uint64_t now_ns, std::uint64_t period_ns) noexcept {
  ahead_ns_ = now_ns;
  const Pages pages = read_memory(now_ns, kAnothersNs);
  if (!is_too_soon(now_ns, kMemoryNs)) record_with(pages, now_ns, period_ns);
  return pages;
}

std::optional<Pages> sample_process_usage(std::uint64_t now_ns) {
  const std::uint64_t period_ns = g_period_ns.load(std::memory_order_relaxed);
  // One that is asked for more seldom isn't made more frequent by others.
  if (period_ns == 0 || period_ns > kMemoryNs) return std::nullopt;
  return usage_of_this_process().sample_for_another(now_ns, period_ns);
}

}  // namespace internal

Status add_process_usage(std::chrono::nanoseconds period) noexcept {
  try {
    if (!internal::is_process_usage_supported()) {
      return Status::failure("process usage: this platform doesn't tell");
    }
    const auto period_ns = static_cast<std::uint64_t>(std::max(period.count(), std::int64_t{0}));
    auto hold = std::make_shared<internal::SourceHold>();
    Status added = internal::add_paced_source(
        "process_usage", period, internal::SourcePace::kWhileBusy, [hold, period_ns] {
          internal::usage_of_this_process().sample(runtime::now_ns(), period_ns);
        });
    if (added) hold->begin(period_ns);
    return added;
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
