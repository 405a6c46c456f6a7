// Where the CPU sampler's samples come from: timers of the threads (timer_backend.h) or perf events
// (perf_backend.h). Strongest property: halt() gives back what was taken of the host, at once.
// Spec: docs/spec/cpu_samples.md, "Backends".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/cpu_sample_stream.h"

namespace dial9::internal {

struct ThreadCounts {
  std::uint32_t sampled = 0;
  std::uint32_t unsampled = 0;
};

// Of samples that were taken and didn't get through, since the backend was made.
struct LossCounts {
  std::uint64_t samples = 0;
  std::uint64_t periods = 0;
};

// What is less than was asked for. A kind has a bit of its own, for the notice is due anew only
// where the kinds change.
struct Shortfall {
  std::uint32_t kind = 0;
  std::string text;
};
enum ShortfallKind : std::uint32_t {
  kRefusedThreads = 1,
  kBlockingThreads = 2,
  kTickBound = 4,
  kLostSamples = 8,
  kNoKernelTime = 16,
  kSmallRings = 32,
  kThrottled = 64,
  kThinned = 128,
};

// One thread at a time.
class SampleBackend {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  using Sink = std::function<void(const CpuSampleRecord&)>;

  SampleBackend() = default;
  virtual ~SampleBackend() = default;
  SampleBackend(const SampleBackend&) = delete;
  SampleBackend& operator=(const SampleBackend&) = delete;

  // For cpu.profile.backend and .event_source.
  virtual std::string_view name() const = 0;
  virtual std::string event_source() const = 0;

  // Recording is on: scan() finds the threads from now on.
  virtual void begin() = 0;
  // Looks for threads that came and went; `own_tid` is left alone.
  virtual void scan(std::uint32_t own_tid) = 0;
  // Hands over what was sampled since. `now_ns` is the recorder's clock.
  virtual void drain(std::uint64_t now_ns, const Sink& sink) = 0;
  // No thread is sampled from now on. What was sampled until then is there for one more drain().
  virtual void halt() = 0;
  // Of what would be sampled one in `one_in` is taken from now on, and stands for all of them.
  virtual void thin(std::uint32_t one_in) = 0;
  // Why it can't go on, and has halted; empty: it can.
  virtual std::string find_end() = 0;

  virtual ThreadCounts threads() const = 0;
  virtual LossCounts lost() const = 0;
  // `is_coarse`: many of the last samples stood for several periods.
  virtual void add_shortfalls(bool is_coarse, std::vector<Shortfall>& to) = 0;
  // While there are samples, drain() is called at least so often.
  virtual std::uint64_t drain_within_ns() const { return kNever; }
};

}  // namespace dial9::internal
