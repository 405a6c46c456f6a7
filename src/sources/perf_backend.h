// Samples from perf events: unwinds the stack copies that the kernel made. No signal is sent.
// Strongest property: nothing is said of a sample that was true only later: what its thread worked
// for at that moment isn't known here, and is left out. Spec: docs/spec/cpu_samples.md, "Perf".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sources/perf_threads.h"
#include "sources/sample_backend.h"

namespace dial9::internal {

class PerfBackend final : public SampleBackend {
 public:
  explicit PerfBackend(const PerfPlan& plan);

  std::string_view name() const override { return "perf"; }
  std::string event_source() const override;
  void begin() override;
  void scan(std::uint32_t own_tid) override;
  void drain(std::uint64_t now_ns, const Sink& sink) override;
  void halt() override;
  void thin(std::uint32_t one_in) override { one_in_ = one_in; }
  std::string find_end() override { return ""; }
  ThreadCounts threads() const override;
  LossCounts lost() const override { return lost_; }
  void add_shortfalls(bool is_coarse, std::vector<Shortfall>& to) override;
  std::uint64_t drain_within_ns() const override;

 private:
  static constexpr std::size_t kMostFrames = 232;

  void take(const PerfSample& sample, const std::string& name, PerfProgress& progress,
            const Sink& sink);

  const PerfPlan plan_;
  std::optional<PerfThreads> threads_;
  std::uint32_t one_in_ = 1;
  LossCounts lost_;
  std::array<std::uint64_t, kMostFrames> frames_{};
};

}  // namespace dial9::internal
