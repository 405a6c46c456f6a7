// See sampled.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/testing/sampled.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "recorder/recording_state.h"

extern "C" {  // the linker's, of the sections below
extern const char __start_dial9_burn_one, __stop_dial9_burn_one;
extern const char __start_dial9_burn_other, __stop_dial9_burn_other;
}

namespace dial9::internal::testing {
namespace {

const format::OwnedValue& field(const Trace& trace, const format::OwnedEvent& event,
                                std::string_view name) {
  return *trace.raw().field(event, name);
}

std::uint64_t spin_until(std::uint64_t end_ns) {
  volatile std::uint64_t work = 1;
  while (thread_cpu_ns() < end_ns) {
    for (int i = 0; i < 2'000; ++i) work = work * 3 + 1;
  }
  return work;
}

thread_local volatile std::uint64_t t_kept = 0;

}  // namespace

std::uint64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Each alone in a section, since the linker names its bounds: a sanitizer's checks make a function
// of any size.
[[gnu::section("dial9_burn_one")]] void burn_one(std::uint64_t ms) {
  t_kept = t_kept + spin_until(thread_cpu_ns() + ms * kTestMs);
}
[[gnu::section("dial9_burn_other")]] void burn_other(std::uint64_t ms) {
  t_kept = t_kept ^ spin_until(thread_cpu_ns() + ms * kTestMs);
}

bool passes(const std::vector<std::uint64_t>& frames, void (*burn)(std::uint64_t)) {
  const bool is_one = burn == burn_one;
  const auto begin = reinterpret_cast<std::uintptr_t>(is_one ? &__start_dial9_burn_one
                                                             : &__start_dial9_burn_other);
  const auto end =
      reinterpret_cast<std::uintptr_t>(is_one ? &__stop_dial9_burn_one : &__stop_dial9_burn_other);
  // A frame of a caller is the return address, which may be the function's end.
  return std::ranges::any_of(frames,
                             [&](std::uint64_t frame) { return frame >= begin && frame <= end; });
}

std::vector<SampleRow> samples_of(const Trace& trace) {
  std::vector<SampleRow> rows;
  for (const format::OwnedEvent& event : trace.raw().events) {
    if (trace.raw().schemas[event.schema].name != "CpuSampleEvent") continue;
    SampleRow row;
    row.at_ns = event.timestamp_ns;
    row.tid = static_cast<std::uint32_t>(field(trace, event, "tid").bits);
    const auto& weight = field(trace, event, "weight");
    row.weight = weight.is_present ? weight.bits : 1;
    row.task = field(trace, event, "task_id").bits;
    row.span = field(trace, event, "span_id").bits;
    row.has_cpu = field(trace, event, "cpu").is_present;
    row.is_truncated = field(trace, event, "truncated").bits != 0;
    row.has_context = field(trace, event, "has_context").bits != 0;
    row.unwound_by = field(trace, event, "unwound_by").text;
    row.thread_name = field(trace, event, "thread_name").text;
    if (field(trace, event, "label_name").is_present) {
      row.label =
          field(trace, event, "label_name").text + "=" + field(trace, event, "label_value").text;
    }
    row.frames = field(trace, event, "callchain").frames;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::uint64_t grain(const std::vector<SampleRow>& rows) {
  std::uint64_t largest = 1;
  for (const SampleRow& row : rows) largest = std::max(largest, row.weight);
  return largest;
}

Sampled::Sampled(const CpuSampleOptions& options) {
  const Status added = add_cpu_samples(options);
  EXPECT_TRUE(added.ok()) << added.message();
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  EXPECT_TRUE(status.ok()) << status.message();
  recorder_ = std::move(recorder);
}

Sampled::~Sampled() {
  recorder_.stop(std::chrono::seconds(30));
  remove_cpu_samples();
}

void Sampled::wait_until_sampled() {
  const std::uint32_t own = this_tid();
  const std::uint64_t from = now_ns();
  for (;;) {
    burn_other(5);
    EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(30)));
    for (const SampleRow& row : samples_of(Trace::of(recorder_.sealed_segments()))) {
      if (row.tid == own && row.at_ns >= from) return;
    }
  }
}

Trace Sampled::read() {
  EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(30)));
  return Trace::of(recorder_.sealed_segments());
}

std::vector<SampleRow> Sampled::finish() {
  // The ring's rest comes with the last segment, which stop() seals: its copy is asked for before.
  return samples_of(read());
}

Burnt burn_on_threads(Sampled& sampled) {
  std::atomic<int> ready{0};
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> spans;
  std::vector<std::thread> threads;
  std::mutex mutex;
  for (const std::uint64_t ms : {600, 300, 100}) {
    threads.emplace_back([&, ms] {
      ::pthread_setname_np(::pthread_self(), ("burns-" + std::to_string(ms)).c_str());
      sampled.wait_until_sampled();
      ++ready;
      while (ready < 3) std::this_thread::yield();
      const std::uint64_t from = now_ns();
      burn_one(ms);
      const std::lock_guard lock(mutex);
      spans[this_tid()] = {from, now_ns()};
    });
  }
  for (std::thread& thread : threads) thread.join();
  Burnt burnt{sampled.finish(), {}};
  for (const SampleRow& row : burnt.all) {
    const auto at = spans.find(row.tid);
    const bool is_inside =
        at != spans.end() && row.at_ns >= at->second.first && row.at_ns < at->second.second;
    if (is_inside) burnt.rows.push_back(row);
  }
  return burnt;
}

}  // namespace dial9::internal::testing
