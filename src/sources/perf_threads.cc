// See perf_threads.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/perf_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/descriptor_numbers.h"
#include "recorder/fork_child.h"
#include "sources/thread_list.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kLooksAgain = 16;
constexpr std::uint64_t kRingNs = 300'000'000;
constexpr std::size_t kLeastRingBytes = 32 << 10;
constexpr std::size_t kMostRingBytes = 512 << 10;
constexpr std::size_t kMlockBytesWhereUnreadable = 516 << 10;  // the kernel's default

rlim_t soft_limit(__rlimit_resource which) {
  rlimit limit{};
  return ::getrlimit(which, &limit) == 0 ? limit.rlim_cur : 0;
}

// Open descriptors of this process: Linux 6.2 says it in one call.
std::size_t used_descriptors() {
  struct stat facts{};
  if (::stat("/proc/self/fd", &facts) == 0 && facts.st_size > 0) {
    return static_cast<std::size_t>(facts.st_size);
  }
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return ~std::size_t{0};
  std::size_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

bool may_lock_any() {
  const std::string status = read_thread_status(static_cast<std::uint32_t>(::syscall(SYS_gettid)));
  const std::string_view mask = status_value(status, "\nCapEff:\t");
  std::uint64_t effective = 0;
  std::from_chars(mask.data(), mask.data() + mask.size(), effective, 16);
  return (effective >> CAP_IPC_LOCK & 1) != 0;
}

std::size_t mlock_bytes_of_a_cpu() {
  static const std::size_t bytes = [] {
    std::ifstream file("/proc/sys/kernel/perf_event_mlock_kb");
    std::size_t kib = 0;
    return file >> kib ? kib << 10 : kMlockBytesWhereUnreadable;
  }();
  return bytes;
}

// At a number out of the host's way, if there is one.
UniqueFd move_up(UniqueFd fd) {
  UniqueFd moved(duplicate_high(fd.get()));
  return moved ? std::move(moved) : std::move(fd);
}

// No fork falls between the opening and the note. None: see errno.
GuardedFd open_guarded(std::uint32_t tid, const PerfPlan& plan) {
  const ForkPause pause;
  UniqueFd event = open_perf_event(tid, plan);
  if (!event) return {};
  return GuardedFd(move_up(std::move(event)).release());
}

// What an event says when it is read; zeros: its descriptor is gone.
struct EventCounts {
  std::uint64_t count = 0;
  std::uint64_t lost = 0;  // where the plan counts them
};
EventCounts read_counts(int fd) {
  std::uint64_t words[2] = {};
  return ::read(fd, words, sizeof words) > 0 ? EventCounts{words[0], words[1]} : EventCounts{};
}

// Without samples in the kernel, what the count has beyond the samples is time spent there as well.
bool has_all_time(const PerfPlan& plan) {
  return plan.has_kernel && plan.kind == PerfKind::kCpuClock;
}

}  // namespace

std::uint64_t PerfProgress::weigh(std::uint64_t count_ns, const PerfPlan& plan) {
  if (!has_all_time(plan)) return 1;
  const std::uint64_t due = (count_ns + plan.period_ns / 2) / plan.period_ns;
  const std::uint64_t weight = due > periods ? due - periods : 1;
  periods += weight;
  return weight;
}

std::uint64_t PerfProgress::lose(std::uint64_t more, std::uint64_t count_ns, bool is_end,
                                 const PerfPlan& plan) {
  std::uint64_t share = more;
  if (has_all_time(plan)) {
    const std::uint64_t due = (count_ns + (is_end ? 0 : plan.period_ns / 2)) / plan.period_ns;
    const std::uint64_t since = due > periods ? due - periods : 0;
    share = std::max(more, since * more / (more + (is_end ? 0 : 1)));
  }
  lost += more;
  periods += share;
  return share;
}

PerfRoom perf_room(std::size_t opened) {
  PerfRoom room;
  const std::size_t limit = soft_limit(RLIMIT_NOFILE);
  const std::size_t used = used_descriptors();
  const std::size_t others = used > opened ? used - opened : 0;
  room.descriptors = std::min(limit > others ? (limit - others) / 4 : 0, kMostPerfDescriptors);
  const std::size_t locked = soft_limit(RLIMIT_MEMLOCK);
  room.ring_bytes = may_lock_any()
                        ? kMostPerfRingBytes
                        : std::clamp(locked / 2, mlock_bytes_of_a_cpu(), kMostPerfRingBytes);
  return room;
}

std::size_t perf_ring_bytes(std::uint64_t period_ns) {
  const std::uint64_t samples = kRingNs / std::max<std::uint64_t>(period_ns, 1) + 1;
  return std::bit_ceil(
      std::clamp<std::uint64_t>(samples * kPerfRecordBytes, kLeastRingBytes, kMostRingBytes));
}

PerfThreads::PerfThreads(const PerfPlan& plan) : plan_(plan) {}

PerfThreads::~PerfThreads() {
  halt();
  drain([](const PerfSample&, const std::string&, PerfProgress&) {},
        [](std::uint64_t, std::uint64_t) {});
}

void PerfThreads::refuse(Thread& thread, std::string why) {
  thread.state = State::kRefused;
  counts_.refusal = std::move(why);
}

// The size that is wanted, or less where that is refused or the room is short.
std::unique_ptr<PerfRing> PerfThreads::make_ring(int fd) {
  errno = EPERM;
  const std::size_t wanted = plan_.kind == PerfKind::kCpuClock   ? perf_ring_bytes(plan_.period_ns)
                             : plan_.kind == PerfKind::kSwitches ? kSwitchRingBytes
                                                                 : kSwitchStackRingBytes;
  for (std::size_t bytes = wanted; bytes >= kLeastRingBytes; bytes /= 2) {
    if (ring_bytes_ + bytes > room_.ring_bytes) continue;
    if (auto ring = PerfRing::map(fd, bytes)) return ring;
    if (errno != EPERM && errno != ENOMEM) return nullptr;
  }
  return nullptr;
}

void PerfThreads::open(std::uint32_t tid, Thread& thread) {
  if (opened_ >= room_.descriptors) {
    return refuse(thread, "a descriptor for thread " + std::to_string(tid) +
                              " isn't taken: " + std::to_string(opened_) +
                              " are, at most a quarter of what others leave of RLIMIT_NOFILE=" +
                              std::to_string(soft_limit(RLIMIT_NOFILE)) + " and " +
                              std::to_string(kMostPerfDescriptors) + " (raise ulimit -n)");
  }
  GuardedFd guarded = open_guarded(tid, plan_);
  if (!guarded) {
    if (errno == ESRCH) return;  // ended meanwhile: the next scan won't list it
    return refuse(thread, perf_open_refusal(errno, plan_.paranoid, plan_.kind));
  }
  auto ring = make_ring(guarded.get());
  if (ring == nullptr) return refuse(thread, perf_ring_refusal(errno, kLeastRingBytes));
  if (!guarded.is_noted()) return refuse(thread, "no room to note its descriptor");
  ring_bytes_ += ring->bytes();
  ++opened_;
  thread.event = std::move(guarded);
  thread.ring = std::move(ring);
  thread.state = State::kOpen;
  thread.tid = tid;
  if (plan_.kind == PerfKind::kCpuClock) name(tid, thread);
}

// Switches need none. One that ended meanwhile keeps the name it had.
void PerfThreads::name(std::uint32_t tid, Thread& thread) {
  std::string now = parse_thread_status(read_thread_status(tid), 0).name;
  if (!now.empty()) thread.name = std::move(now);
}

// Its samples are read by the next drain(), which closes it. Where the host closed its descriptor,
// the event goes on until then: its ring holds it.
void PerfThreads::end(Thread& thread) {
  if (thread.state == State::kOpen) {
    ::ioctl(thread.event.get(), PERF_EVENT_IOC_DISABLE, 0);
    ending_.push_back(std::move(thread));
    thread = {};
  }
  thread.state = State::kNew;
}

void PerfThreads::close(Thread& thread, const OnLost& on_lost) {
  // What was lost after the last sample that got through, no record tells.
  const EventCounts counts = read_counts(thread.event.get());
  const std::uint64_t known = thread.progress.lost;
  std::uint64_t more = std::exchange(thread.progress.lost_now, 0);
  if (plan_.counts_lost) more = counts.lost > known ? counts.lost - known : 0;
  if (more != 0) on_lost(more, thread.progress.lose(more, counts.count, true, plan_));
  ring_bytes_ -= thread.ring->bytes();
  --opened_;
}

// A thread that ended hangs up; its id may be another's by now. An event whose descriptor the host
// closed ends too, and is opened again.
void PerfThreads::find_ended() {
  std::vector<pollfd> events;
  std::vector<Thread*> owners;
  for (auto& [tid, thread] : threads_) {
    if (thread.state != State::kOpen) continue;
    const int fd = thread.event.get();
    if (fd < 0) {
      end(thread);
      continue;
    }
    events.push_back({fd, 0, 0});
    owners.push_back(&thread);
  }
  if (events.empty() || ::poll(events.data(), events.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if ((events[i].revents & POLLHUP) != 0) end(*owners[i]);
  }
}

void PerfThreads::scan(std::uint32_t own_tid) { scan(own_tid, perf_room(opened_)); }

void PerfThreads::scan(std::uint32_t own_tid, const PerfRoom& room) {
  room_ = room;
  ++round_;
  find_ended();
  list_threads(tids_);
  std::erase(tids_, own_tid);
  for (const std::uint32_t tid : tids_) threads_[tid].round = round_;
  std::size_t open_now = 0;
  for (auto at = threads_.begin(); at != threads_.end();) {
    Thread& thread = at->second;
    const bool is_gone = thread.round != round_;
    if (is_gone || (thread.state == State::kOpen && ++open_now > room_.descriptors)) end(thread);
    at = is_gone ? threads_.erase(at) : std::next(at);
  }
  for (const std::uint32_t tid : tids_) {
    Thread& thread = threads_[tid];
    if (thread.state == State::kNew) open(tid, thread);
  }
  const std::size_t most = std::min(kLooksAgain, tids_.size());
  for (std::size_t i = 0; i < most; ++i) {
    const std::uint32_t tid = tids_[next_look_++ % tids_.size()];
    Thread& thread = threads_[tid];
    if (thread.state == State::kRefused) open(tid, thread);
    if (thread.state == State::kOpen && plan_.kind == PerfKind::kCpuClock) name(tid, thread);
  }
  count();
}

void PerfThreads::count() {
  counts_.sampled = counts_.refused = 0;
  counts_.smallest_ring = 0;
  for (const auto& [tid, thread] : threads_) {
    counts_.sampled += thread.state == State::kOpen ? 1 : 0;
    counts_.refused += thread.state == State::kRefused ? 1 : 0;
    if (thread.ring == nullptr) continue;
    const std::size_t bytes = thread.ring->bytes();
    counts_.smallest_ring =
        counts_.smallest_ring == 0 ? bytes : std::min(counts_.smallest_ring, bytes);
  }
}

void PerfThreads::halt() {
  for (auto& [tid, thread] : threads_) end(thread);
  threads_.clear();
  count();
}

// What is put in meanwhile waits for the next time: a fast writer doesn't keep the reader here.
// Returns the bytes taken.
template <class Function>
std::size_t PerfThreads::take_records(PerfRing& ring, Function function) {
  std::size_t taken = 0;
  while (taken < ring.bytes()) {
    const auto record = ring.front();
    if (record.empty()) break;
    taken += record.size();
    function(record);
    ring.pop();
  }
  return taken;
}

void PerfThreads::drain_one(Thread& thread, const OnSample& on_sample, const OnLost& on_lost) {
  // Most threads give themselves a name as soon as they run, which may be after they were found.
  if (!thread.has_samples && !thread.ring->is_empty()) {
    thread.has_samples = true;
    if (plan_.kind == PerfKind::kCpuClock) name(thread.tid, thread);
  }
  take_records(*thread.ring, [&](std::span<const std::byte> record) {
    perf_event_header header{};
    std::memcpy(&header, record.data(), sizeof header);
    if (header.type == PERF_RECORD_THROTTLE) ++counts_.throttled;
    PerfProgress& progress = thread.progress;
    if (header.type == PERF_RECORD_LOST && !plan_.counts_lost && record.size() >= 24) {
      std::uint64_t lost = 0;
      std::memcpy(&lost, record.data() + 16, sizeof lost);
      progress.lost_now += lost;
    }
    const auto sample = parse_perf_sample(record, plan_);
    if (!sample) return;
    std::uint64_t more = std::exchange(progress.lost_now, 0);
    if (plan_.counts_lost && sample->lost > progress.lost) more = sample->lost - progress.lost;
    if (more != 0) on_lost(more, progress.lose(more, sample->count_ns, false, plan_));
    on_sample(*sample, thread.name, progress);
  });
}

// A loss is told with the next record that has room: of a ring that was full one may be to come.
void PerfThreads::drain_switches(PerfRing& ring, std::uint32_t tid, std::vector<ThreadSwitch>* to) {
  constexpr std::size_t kLossRecordBytes = 40;
  const std::size_t taken = take_records(ring, [&](std::span<const std::byte> record) {
    if (const auto found = parse_perf_switch(record)) to->push_back(*found);
  });
  if (taken + 2 * kPerfSwitchBytes + kLossRecordBytes <= ring.bytes()) return;
  to->push_back({.at_ns = 0, .lost = 0, .tid = tid, .kind = SwitchKind::kLost});
}

bool PerfThreads::drain_switches(std::uint32_t tid, std::vector<ThreadSwitch>* to) {
  const auto known = threads_.find(tid);
  if (known == threads_.end() || known->second.state != State::kOpen) return false;
  if (!known->second.ring->is_empty()) drain_switches(*known->second.ring, tid, to);
  return true;
}

void PerfThreads::drain_ended_switches(std::vector<ThreadSwitch>* to) {
  for (Thread& thread : ending_) {
    drain_switches(*thread.ring, thread.tid, to);
    close(thread, [](std::uint64_t, std::uint64_t) {});
  }
  ending_.clear();
}

bool PerfThreads::drain(std::uint32_t tid, const OnSample& on_sample, const OnLost& on_lost) {
  const auto known = threads_.find(tid);
  if (known == threads_.end() || known->second.state != State::kOpen) return false;
  if (!known->second.ring->is_empty()) drain_one(known->second, on_sample, on_lost);
  return true;
}

void PerfThreads::drain(const OnSample& on_sample, const OnLost& on_lost) {
  for (auto& [tid, thread] : threads_) {
    if (thread.state == State::kOpen) drain_one(thread, on_sample, on_lost);
  }
  for (Thread& thread : ending_) {
    drain_one(thread, on_sample, on_lost);
    close(thread, on_lost);
  }
  ending_.clear();
}

}  // namespace dial9::internal
