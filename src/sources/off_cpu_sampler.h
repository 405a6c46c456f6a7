// The collector's side of off-CPU samples: steps the quiet wall sampler while recording is on, and
// keeps its books. Strongest property: in the child of a fork it begins anew, with none of its
// parent's descriptors. Spec: docs/spec/off_cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fork_lock.h"
#include "dial9/off_cpu.h"
#include "recorder/stream_source.h"

namespace dial9::internal {

class OffCpuSampler final : public StreamSource {
 public:
  // The process's one; never destroyed.
  static OffCpuSampler& instance();

  Status start(const OffCpuOptions& options);
  bool stop();
  OffCpuStatus status() const;

  // StreamSource
  std::uint64_t attend(std::uint64_t now_ns) override;
  std::uint64_t wake_ns() const override;
  void rest() override;
  std::vector<SourceStream> take() override;
  void set_budget(const GovernorBudget& budget) override;
  std::string_view name() const override { return "off_cpu_samples"; }
  std::string shortfall() const override;
  std::uint64_t metadata_version() const override;
  Metadata metadata() const override;

 private:
  // What the lock guards. One a process: a child makes its own, and leaves the parent's alone.
  struct State;
  class Guard;

  OffCpuSampler() = default;
  static void ask_for_switches(const OffCpuOptions& options, State& state);
  static void rest(State& state);
  static void note_trouble(State& state);

  mutable ForkLock lock_;
  mutable State* state_ = nullptr;
};

}  // namespace dial9::internal
