// See heap_recording.h.
// SPDX-License-Identifier: Apache-2.0
#include "heap/testing/heap_recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "heap/heap_sampler.h"
#include "heap/hooks.h"

extern "C" {  // the linker's, of the sections below
extern const char __start_dial9_allocate_one, __stop_dial9_allocate_one;
extern const char __start_dial9_allocate_other, __stop_dial9_allocate_other;
}

namespace dial9::heap::testing {
namespace {

void* kept(void* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");  // neither elided nor a tail call
  return pointer;
}

}  // namespace

[[gnu::section("dial9_allocate_one")]] void* allocate_one(std::size_t bytes) {
  return kept(std::malloc(bytes));
}
[[gnu::section("dial9_allocate_other")]] void* allocate_other(std::size_t bytes) {
  return kept(std::malloc(bytes));
}

bool passes(const std::vector<std::uint64_t>& frames, Site site) {
  const bool is_one = site == allocate_one;
  const auto begin = reinterpret_cast<std::uintptr_t>(is_one ? &__start_dial9_allocate_one
                                                             : &__start_dial9_allocate_other);
  const auto end = reinterpret_cast<std::uintptr_t>(is_one ? &__stop_dial9_allocate_one
                                                           : &__stop_dial9_allocate_other);
  return std::ranges::any_of(frames,
                             [&](std::uint64_t frame) { return frame >= begin && frame <= end; });
}

std::vector<AllocRow> allocs_of(const internal::Trace& trace) {
  std::vector<AllocRow> rows;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> by_address_and_time;
  const auto field = [&](const auto& event, const char* name) -> const format::OwnedValue& {
    return *trace.raw().field(event, name);
  };
  for (const format::OwnedEvent& event : trace.raw().events) {
    const std::string_view type = trace.raw().schemas[event.schema].name;
    if (type == "AllocEvent") {
      AllocRow row;
      row.at_ns = event.timestamp_ns;
      row.tid = static_cast<std::uint32_t>(field(event, "tid").bits);
      row.size = field(event, "size").bits;
      row.address = field(event, "addr").bits;
      row.task = field(event, "task_id").bits;
      row.span = field(event, "span_id").bits;
      row.rate = field(event, "sample_rate_bytes").bits;
      row.is_tracked = field(event, "tracked").bits != 0;
      row.is_truncated = field(event, "truncated").bits != 0;
      row.unwound_by = field(event, "unwound_by").text;
      if (field(event, "label_name").is_present) {
        row.label = field(event, "label_name").text + "=" + field(event, "label_value").text;
      }
      row.frames = field(event, "callchain").frames;
      by_address_and_time[{row.address, row.at_ns}] = rows.size();
      rows.push_back(row);
    } else if (type == "FreeEvent") {
      const auto at = by_address_and_time.find(
          {field(event, "addr").bits, field(event, "alloc_timestamp_ns").bits});
      if (at == by_address_and_time.end()) continue;
      AllocRow& row = rows[at->second];
      EXPECT_EQ(row.size, field(event, "size").bits);
      EXPECT_EQ(row.freed_ns, 0U) << "freed twice";
      row.freed_ns = event.timestamp_ns;
      row.freed_tid = static_cast<std::uint32_t>(field(event, "tid").bits);
    }
  }
  return rows;
}

double weight_of(std::uint64_t size, std::uint64_t rate) {
  if (rate == 1) return 1;
  return 1 / -std::expm1(-static_cast<double>(size) / static_cast<double>(rate));
}

namespace {

// What reading a trace allocates is none of the test's.
class Unsampled {
 public:
  Unsampled() : was_(std::exchange(t_thread.is_own, true)) {}
  ~Unsampled() { t_thread.is_own = was_; }
  Unsampled(const Unsampled&) = delete;
  Unsampled& operator=(const Unsampled&) = delete;

 private:
  const bool was_;
};

}  // namespace

HeapRecording::HeapRecording(const HeapSampleOptions& options, std::uint64_t seed) {
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(directory_.path()));
  EXPECT_TRUE(status.ok()) << status.message();
  recorder_ = std::move(recorder);
  run_ = recorder_.status().directory;
  remove_heap_samples();
  const Status added = HeapSampler::instance().start(options, seed);
  EXPECT_TRUE(added.ok()) << added.message();
}

HeapRecording::~HeapRecording() {
  remove_heap_samples();
  recorder_.stop();
}

internal::Trace HeapRecording::read() {
  const Unsampled here;
  EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(10)));
  return internal::Trace::of_directory(recorder_.status().directory);
}

std::vector<AllocRow> HeapRecording::rows() {
  const Unsampled here;
  return allocs_of(read());
}

internal::Trace HeapRecording::finish() {
  const Unsampled here;
  EXPECT_TRUE(recorder_.stop(std::chrono::seconds(10)).is_complete);
  return internal::Trace::of_directory(run_);
}

}  // namespace dial9::heap::testing
