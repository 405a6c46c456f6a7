// The collector's side of heap samples: opens and closes the gate, drains the ring into streams,
// and keeps the books. Strongest property: in the child of a fork it begins anew, whatever its
// parent was doing at that moment. Spec: docs/spec/heap_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fork_lock.h"
#include "dial9/heap_samples.h"
#include "recorder/stream_source.h"

namespace dial9::heap {

class HeapSampler final : public internal::StreamSource {
 public:
  // The process's one; never destroyed.
  static HeapSampler& instance();

  // `seed`: of the threads' draws; 0: a different one in each process.
  Status start(const HeapSampleOptions& options, std::uint64_t seed = 0);
  bool stop();
  HeapSampleStatus status() const;

  // StreamSource
  std::uint64_t attend(std::uint64_t now_ns) override;
  void rest() override;
  std::vector<internal::SourceStream> take() override;
  std::uint64_t host_cost_ns() const override;
  bool thin(std::uint32_t one_in) override;
  internal::SampleKind sample_kind() const override { return internal::SampleKind::kHeap; }
  std::uint32_t thinned_to(std::uint32_t told) const override;
  std::uint64_t late_bytes() const override;
  void set_budget(const internal::GovernorBudget& budget) override;
  std::string_view name() const override { return "heap_samples"; }
  std::string shortfall() const override { return status().message; }
  std::uint64_t metadata_version() const override;
  internal::Metadata metadata() const override;

 private:
  // What the lock guards. One a process: a child makes its own, and leaves the parent's alone.
  struct State;
  class Guard;

  HeapSampler() = default;
  static void drain(State& state);
  static void note_window(State& state, std::uint64_t at_ns, bool is_last);
  static void rest(State& state);
  static void allow(const State& state);

  mutable ForkLock lock_;
  mutable State* state_ = nullptr;
};

}  // namespace dial9::heap
