// See perf_event.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/perf_event.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/os_error.h"
#include "sources/perf_ring.h"

#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

namespace dial9::internal {
namespace {

constexpr const char* kParanoidPath = "/proc/sys/kernel/perf_event_paranoid";
constexpr std::uint64_t kReadLost = std::uint64_t{1} << 4;  // PERF_FORMAT_LOST of newer headers
constexpr std::uint64_t kMostKernelFrames = 1024;
constexpr std::uint64_t kProbePeriodNs = 50'000;
constexpr std::uint64_t kProbeNs = 50'000'000;
constexpr std::size_t kProbeRingBytes = 32 << 10;

#if defined(__x86_64__)
constexpr bool kIsSupported = true;
constexpr std::uint64_t kRegisters = std::uint64_t{1} << PERF_REG_X86_BP |
                                     std::uint64_t{1} << PERF_REG_X86_SP |
                                     std::uint64_t{1} << PERF_REG_X86_IP;
constexpr std::uint64_t kArgument = std::uint64_t{1} << PERF_REG_X86_SI;  // a call's second
static_assert(PERF_REG_X86_SI < PERF_REG_X86_BP && PERF_REG_X86_BP < PERF_REG_X86_SP &&
              PERF_REG_X86_SP < PERF_REG_X86_IP);
#else
constexpr bool kIsSupported = false;
constexpr std::uint64_t kRegisters = 0;
constexpr std::uint64_t kArgument = 0;
#endif

perf_event_attr attributes(const PerfPlan& plan) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  const bool is_clock = plan.kind == PerfKind::kCpuClock;
  wanted.config = is_clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_CONTEXT_SWITCHES;
  wanted.sample_period = is_clock ? plan.period_ns : 1;
  wanted.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  if (plan.has_kernel) wanted.sample_type |= PERF_SAMPLE_CALLCHAIN;
  wanted.read_format = plan.counts_lost ? kReadLost : 0;
  wanted.exclude_kernel = plan.has_kernel || !is_clock ? 0 : 1;  // it is the kernel that switches
  wanted.exclude_hv = 1;
  wanted.exclude_callchain_user = 1;  // the kernel's own walk loses callers without frame pointers
  wanted.sample_regs_user = kRegisters | (is_clock ? 0 : kArgument);
  wanted.sample_stack_user = kPerfStackBytes;
  wanted.use_clockid = 1;
  wanted.clockid = CLOCK_MONOTONIC;
  return wanted;
}

// Allowed where samples of the kernel aren't: a switch says nothing of the kernel's memory.
perf_event_attr switch_attributes() {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_DUMMY;
  wanted.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  wanted.sample_id_all = 1;
  wanted.context_switch = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.use_clockid = 1;
  wanted.clockid = CLOCK_MONOTONIC;
  return wanted;
}

int read_setting(const char* path, int otherwise) {
  std::ifstream file(path);
  int value = otherwise;
  file >> value;
  return file ? value : otherwise;
}

std::uint64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Each sleep is a switch.
bool sees_a_switch(const PerfRing& ring) {
  constexpr int kSleeps = 20;
  const timespec moment{0, 1'000};
  for (int i = 0; i < kSleeps && ring.is_empty(); ++i) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr);
  }
  return !ring.is_empty();
}

bool sees_a_sample(const PerfRing& ring) {
  const std::uint64_t end_ns = thread_cpu_ns() + kProbeNs;
  while (ring.is_empty()) {
    if (thread_cpu_ns() >= end_ns) return false;
  }
  return true;
}

// Takes values off the front.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : left_(bytes) {}
  bool is_good() const { return is_good_; }
  std::uint64_t word() {
    std::uint64_t value = 0;
    const auto from = take(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left_.size()) {
      is_good_ = false;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(static_cast<std::size_t>(bytes));
    left_ = left_.subspan(static_cast<std::size_t>(bytes));
    return taken;
  }

 private:
  std::span<const std::byte> left_;
  bool is_good_ = true;
};

std::string errno_name(int error) {
  switch (error) {
    case EPERM:
      return "EPERM";
    case EACCES:
      return "EACCES";
    case ENOSYS:
      return "ENOSYS";
    default:
      return std::strerror(error);
  }
}

constexpr const char* kTimersWork =
    "; timers of the threads need none of that (backend \"timers\", the default)";
constexpr const char* kLooksWork =
    "; waits come from looks at the threads and times from schedstat, which need none of that";
constexpr const char* kSwitchesWork =
    "; switches are followed without their stacks, and waits that a look saw have theirs";

const char* what_works(PerfKind kind) {
  switch (kind) {
    case PerfKind::kSwitches:
      return kLooksWork;
    case PerfKind::kSwitchStacks:
      return kSwitchesWork;
    case PerfKind::kCpuClock:
      break;
  }
  return kTimersWork;
}

// Of own threads. PERF_FORMAT_LOST where the kernel has it.
UniqueFd open_counting_lost(PerfPlan& plan) {
  plan.counts_lost = true;
  UniqueFd event = open_perf_event(0, plan);
  if (event || errno != EINVAL) return event;
  plan.counts_lost = false;
  return open_perf_event(0, plan);
}

}  // namespace

UniqueFd open_perf_event(std::uint32_t tid, const PerfPlan& plan) {
  perf_event_attr wanted =
      plan.kind == PerfKind::kSwitches ? switch_attributes() : attributes(plan);
  return UniqueFd(static_cast<int>(::syscall(SYS_perf_event_open, &wanted, static_cast<pid_t>(tid),
                                             -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

PerfProbe probe_perf(std::uint64_t period_ns) {
  PerfProbe probe;
  if (!kIsSupported) {
    probe.refusal = std::string("perf events are unwound on x86-64 only") + kTimersWork;
    return probe;
  }
  PerfPlan& plan = probe.plan;
  plan = {kProbePeriodNs, true, true, read_setting(kParanoidPath, 0)};
  UniqueFd event = open_counting_lost(plan);
  if (!event && (errno == EACCES || errno == EPERM)) {
    plan.has_kernel = false;
    event = open_counting_lost(plan);
  }
  if (!event) {
    probe.refusal = perf_open_refusal(errno, plan.paranoid);
    return probe;
  }
  const auto ring = PerfRing::map(event.get(), kProbeRingBytes);
  if (!ring) {
    probe.refusal = perf_ring_refusal(errno, kProbeRingBytes);
  } else if (!sees_a_sample(*ring)) {
    probe.refusal =
        std::string("perf cpu-clock event opened but delivered no sample") + kTimersWork;
  }
  plan.period_ns = period_ns;
  return probe;
}

PerfProbe probe_perf_switches() {
  PerfProbe probe;
  probe.plan.kind = PerfKind::kSwitches;
  probe.plan.paranoid = read_setting(kParanoidPath, 0);
  const UniqueFd event = open_perf_event(0, probe.plan);
  if (!event) {
    probe.refusal = perf_open_refusal(errno, probe.plan.paranoid, PerfKind::kSwitches);
    return probe;
  }
  const auto ring = PerfRing::map(event.get(), kProbeRingBytes);
  if (!ring) {
    probe.refusal = perf_ring_refusal(errno, kProbeRingBytes) + kLooksWork;
  } else if (!sees_a_switch(*ring)) {
    probe.refusal = std::string("perf switch event opened but delivered no switch") + kLooksWork;
  }
  return probe;
}

PerfProbe probe_perf_switch_stacks() {
  PerfProbe probe;
  PerfPlan& plan = probe.plan;
  plan.kind = PerfKind::kSwitchStacks;
  plan.paranoid = read_setting(kParanoidPath, 0);
  if (!kIsSupported) {
    probe.refusal = std::string("stacks at switches are unwound on x86-64 only") + kSwitchesWork;
    return probe;
  }
  const UniqueFd event = open_counting_lost(plan);
  if (!event) {
    probe.refusal = perf_open_refusal(errno, plan.paranoid, plan.kind);
    return probe;
  }
  const auto ring = PerfRing::map(event.get(), kProbeRingBytes);
  if (!ring) {
    probe.refusal = perf_ring_refusal(errno, kProbeRingBytes) + kSwitchesWork;
    return probe;
  }
  const auto sample = sees_a_switch(*ring) ? parse_perf_sample(ring->front(), plan) : std::nullopt;
  if (!sample || !sample->has_registers) {
    probe.refusal =
        std::string("perf context-switch event opened but delivered no stack") + kSwitchesWork;
  }
  return probe;
}

std::string perf_open_refusal(int error, int paranoid, PerfKind kind) {
  const std::string tried = "perf_event_open: ";
  const char* const otherwise = what_works(kind);
  const int most_paranoid = kind == PerfKind::kSwitchStacks ? 1 : 2;
  if (error == ENOSYS || (error == EPERM && paranoid <= most_paranoid)) {
    return tried + "blocked (" + errno_name(error) +
           "; seccomp or CAP_PERFMON): allow perf_event_open in the seccomp profile, or add "
           "CAP_PERFMON" +
           otherwise;
  }
  if (error == EACCES || error == EPERM) {
    return tried + "refused (" + errno_name(error) +
           "): it needs kernel.perf_event_paranoid<=" + std::to_string(most_paranoid) + " (now " +
           std::to_string(paranoid) +
           ") or CAP_PERFMON, and no filter (seccomp, security module) that denies it" + otherwise;
  }
  return tried + "failed (" + errno_name(error) + ")" + otherwise;
}

std::string perf_ring_refusal(int error, std::size_t bytes) {
  const std::string ring = "ring of " + std::to_string(bytes / 1024) + " KiB refused: ";
  if (error != EPERM) return ring + std::strerror(error);
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string has =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
  return ring + "RLIMIT_MEMLOCK=" + has +
         " and perf_event_mlock_kb used up; raise ulimit -l (or kernel.perf_event_mlock_kb)";
}

std::string no_kernel_time_text(int paranoid) {
  return "time in the kernel is missing: perf samples in it need kernel.perf_event_paranoid<=1 "
         "(now " +
         std::to_string(paranoid) +
         ") or CAP_PERFMON; timers of the threads (backend \"timers\") count it";
}

std::optional<PerfSample> parse_perf_sample(std::span<const std::byte> record,
                                            const PerfPlan& plan) {
  perf_event_header header{};
  if (record.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.type != PERF_RECORD_SAMPLE || header.size != record.size()) return std::nullopt;
  Cursor from(record.subspan(sizeof header));
  PerfSample sample;
  sample.tid = static_cast<std::uint32_t>(from.word() >> 32);
  sample.at_ns = from.word();
  sample.cpu = static_cast<std::int32_t>(from.word() & 0xFFFF'FFFF);
  sample.count_ns = from.word();
  if (plan.counts_lost) sample.lost = from.word();
  if (plan.has_kernel) {
    const std::uint64_t count = from.word();
    if (count > kMostKernelFrames) return std::nullopt;
    const auto bytes = from.take(count * 8);
    sample.in_kernel = {reinterpret_cast<const std::uint64_t*>(bytes.data()), bytes.size() / 8};
  }
  if (const std::uint64_t abi = from.word(); abi != PERF_SAMPLE_REGS_ABI_NONE) {
    sample.has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
    if (plan.kind == PerfKind::kSwitchStacks) sample.argument = from.word();
    sample.fp = from.word();
    sample.sp = from.word();
    sample.pc = from.word();
  }
  // 0: nothing follows; else that many bytes, and of how many of them were read.
  if (const std::uint64_t room = from.word(); room != 0) {
    const auto bytes = from.take(room);
    const std::uint64_t copied = from.word();
    if (copied > bytes.size()) return std::nullopt;
    sample.stack = bytes.first(static_cast<std::size_t>(copied));
  }
  if (!from.is_good()) return std::nullopt;
  return sample;
}

std::optional<ThreadSwitch> parse_perf_switch(std::span<const std::byte> record) {
  perf_event_header header{};
  if (record.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.size != record.size()) return std::nullopt;
  Cursor from(record.subspan(sizeof header));
  ThreadSwitch found;
  if (header.type == PERF_RECORD_LOST) {
    from.word();  // the event's id
    found.kind = SwitchKind::kLost;
    found.lost = from.word();
  } else if (header.type == PERF_RECORD_SWITCH) {
    const bool is_out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
    const bool is_preempted = (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    found.kind = !is_out        ? SwitchKind::kIn
                 : is_preempted ? SwitchKind::kPreempted
                                : SwitchKind::kBlocked;
  } else {
    return std::nullopt;
  }
  found.tid = static_cast<std::uint32_t>(from.word() >> 32);
  found.at_ns = from.word();
  return from.is_good() ? std::optional(found) : std::nullopt;
}

}  // namespace dial9::internal
