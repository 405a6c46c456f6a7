// What a profiler's signal handler asks of the thread that it interrupted: its task, its innermost
// open span and its label. Strongest property: async-signal-safe and wait-free; each is right as of
// an instruction next to the interrupted one, or absent. Spec: docs/spec/cpu_samples.md, "Context".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "recorder/labels.h"

namespace dial9::internal {

struct SampleContext {
  std::uint64_t task = 0;  // 0: none
  std::uint64_t span = 0;  // 0: none
  LabelText label{};
};

void read_sample_context(SampleContext* context) noexcept;

}  // namespace dial9::internal
