// Traces with CPU samples, as our recorder writes them, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/testing/trace_builder.h"

namespace dial9::analysis::testing {

struct MadeSample {
  std::uint64_t at_ns = 0;
  std::vector<std::uint64_t> frames = {};  // leaf first
  std::uint64_t weight = 1;
  std::string label = {};  // of the name "tenant"
  std::uint64_t task = 0;
  std::uint64_t span = 0;
  std::uint32_t tid = 7;
  std::string thread = "io";
  bool is_truncated = false;
  std::string unwound_by = {};  // empty: the sample doesn't say
  bool is_switch = false;           // of a context switch, as other writers record them
  bool has_context = true;      // false: as perf's, which can't tell; what is above isn't recorded
};

class CpuTrace {
 public:
  void add(const MadeSample& sample);
  void module(const std::string& path, std::uint64_t begin, std::uint64_t since_ns = 1,
              std::uint64_t before_ns = 0, std::uint64_t epoch = 1,
              const std::string& build_id = "ab");
  // What a second of sampling came to.
  void books(std::uint64_t at_ns, std::uint32_t hz, std::uint64_t cpu_ns, std::uint64_t periods,
             std::uint64_t lost);

  TraceBuilder builder;  // type ids from 110 to 112 are this one's
};

}  // namespace dial9::analysis::testing
