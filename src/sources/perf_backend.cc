// See perf_backend.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/perf_backend.h"

#include <algorithm>

#include "base/plural.h"
#include "sources/perf_stack.h"

namespace dial9::internal {
namespace {

// PERF_CONTEXT_...: says whose addresses follow, and is none.
constexpr std::uint64_t kFirstMarker = ~std::uint64_t{4094};

}  // namespace

PerfBackend::PerfBackend(const PerfPlan& plan) : plan_(plan) {}

std::string PerfBackend::event_source() const {
  return plan_.has_kernel ? "perf cpu-clock, user and kernel" : "perf cpu-clock, user only";
}

void PerfBackend::begin() { threads_.emplace(plan_); }

void PerfBackend::scan(std::uint32_t own_tid) { threads_->scan(own_tid); }

void PerfBackend::halt() {
  if (threads_) threads_->halt();
}

void PerfBackend::take(const PerfSample& sample, const std::string& name, PerfProgress& progress,
                       const Sink& sink) {
  constexpr std::uint64_t kMostPeriods = ~std::uint32_t{0};
  const std::uint64_t periods = std::min(progress.weigh(sample.count_ns, plan_), kMostPeriods);
  const std::uint32_t weight =
      progress.thinning.take(static_cast<std::uint32_t>(periods), one_in_, sample.at_ns);
  if (weight == 0) return;
  std::size_t count = 0;
  for (const std::uint64_t address : sample.in_kernel) {
    if (address < kFirstMarker && count < frames_.size()) frames_[count++] = address;
  }
  CpuSampleRecord record;
  const unwind::Result walked = unwind_sample(sample, std::span(frames_).subspan(count));
  count += walked.count;
  record.at_ns = sample.at_ns;
  record.tid = sample.tid;
  record.weight = weight;
  record.cpu = sample.cpu;
  record.is_truncated = walked.truncated();
  record.unwound_by = unwind::method_name(walked.method);
  record.thread_name = name;
  record.has_context = false;
  record.frames = std::span(frames_).first(count);
  sink(record);
}

void PerfBackend::drain(std::uint64_t /*now_ns*/, const Sink& sink) {
  if (!threads_) return;
  threads_->drain([&](const PerfSample& sample, const std::string& name,
                      PerfProgress& progress) { take(sample, name, progress, sink); },
                  [&](std::uint64_t samples, std::uint64_t periods) {
                    lost_.samples += samples;
                    lost_.periods += periods;
                  });
}

ThreadCounts PerfBackend::threads() const {
  if (!threads_) return {};
  return {threads_->counts().sampled, threads_->counts().refused};
}

void PerfBackend::add_shortfalls(bool /*is_coarse*/, std::vector<Shortfall>& to) {
  if (!plan_.has_kernel) to.push_back({kNoKernelTime, no_kernel_time_text(plan_.paranoid)});
  if (!threads_) return;
  const PerfCounts& counts = threads_->counts();
  if (counts.refused != 0) {
    to.push_back({kRefusedThreads, counts.refusal + "; " + std::to_string(counts.sampled) + " of " +
                                       std::to_string(counts.sampled + counts.refused) +
                                       " threads are sampled"});
  }
  const std::size_t wanted = perf_ring_bytes(plan_.period_ns);
  if (counts.smallest_ring != 0 && counts.smallest_ring < wanted) {
    to.push_back({kSmallRings, "some threads' rings have " +
                                   std::to_string(counts.smallest_ring / 1024) + " KiB, not " +
                                   std::to_string(wanted / 1024) +
                                   ", for want of locked memory (raise ulimit -l)"});
  }
  if (counts.throttled != 0) {
    to.push_back({kThrottled, "the kernel throttled samples " + plural(counts.throttled, "time") +
                                  " (kernel.perf_event_max_sample_rate)"});
  }
}

// Half of what the smallest ring holds.
std::uint64_t PerfBackend::drain_within_ns() const {
  const std::size_t bytes = threads_ ? threads_->counts().smallest_ring : 0;
  if (bytes == 0) return kNever;
  return std::max<std::uint64_t>(bytes / kPerfRecordBytes / 2, 1) * plan_.period_ns;
}

}  // namespace dial9::internal
