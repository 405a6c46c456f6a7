// The collector's side of CPU samples: has a backend find threads and samples, writes these into
// streams, and keeps the books. Strongest property: in the child of a fork it begins
// anew, whatever its parent was doing at that moment. Spec: docs/spec/cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fork_lock.h"
#include "dial9/cpu_samples.h"
#include "recorder/cpu_sample_stream.h"
#include "recorder/stream_source.h"
#include "sources/sample_backend.h"

namespace dial9::internal {

class CpuSampler final : public StreamSource {
 public:
  // The process's one; never destroyed.
  static CpuSampler& instance();

  Status start(const CpuSampleOptions& options);
  bool stop();
  CpuSampleStatus status() const;

  // StreamSource
  std::uint64_t attend(std::uint64_t now_ns) override;
  std::uint64_t wake_ns() const override;
  void rest() override;
  std::vector<SourceStream> take() override;
  std::uint64_t host_cost_ns() const override;
  bool thin(std::uint32_t one_in) override;
  std::string_view name() const override { return "cpu_samples"; }
  std::string shortfall() const override { return status().message; }
  std::uint64_t metadata_version() const override;
  Metadata metadata() const override;

 private:
  // What the lock guards. One a process: a child makes its own, and leaves the parent's alone.
  struct State;
  class Guard;

  CpuSampler() = default;
  static void begin_anew(State& state);
  static std::string prepare_timers(State& state, const CpuSampleOptions& options);
  static std::string prepare_perf(State& state);
  static void activate(State& state, std::uint64_t now_ns);
  static void drain(State& state);
  static void scan(State& state, std::uint64_t now_ns);
  static void note_window(State& state, std::uint64_t at_ns, const ThreadCounts& threads,
                          bool is_last);
  static void judge_grain(State& state);
  static void note_shortfalls(State& state, bool is_coarse = false);
  static void set_message(State& state, std::string message);
  static void rest(State& state);

  mutable ForkLock lock_;
  mutable State* state_ = nullptr;
};

}  // namespace dial9::internal
