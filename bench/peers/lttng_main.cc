// LTTng-UST: the three-field event as a tracepoint. bench/peers/compare.py has made a snapshot
// session with dial9_bench:order_placed enabled before it starts this program. Strongest property:
// says so and fails where the tracepoint is not enabled, instead of timing a disabled one.
// Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>

#include "harness.h"
#include "lttng_tracepoints.h"

int main(int argc, char** argv) {
  using namespace dial9_bench;
  const Options options = parse_options(argc, argv);
  if (!lttng_ust_tracepoint_enabled(dial9_bench, order_placed)) {
    std::fprintf(stderr, "the tracepoint dial9_bench:order_placed is not enabled in any session\n");
    return 1;
  }
  for (const std::uint32_t threads : kThreadCounts) {
    const auto on = [](std::uint64_t i) {
      lttng_ust_tracepoint(dial9_bench, order_placed, i, 200u, i * 3);
    };
    const auto off = [](std::uint64_t i) {
      lttng_ust_tracepoint(dial9_bench, never_enabled, i, 200u, i * 3);
    };
    report("event_on", threads, measure(options, threads, on), kNotCounted);
    report("event_off", threads, measure(options, threads, off), kNotCounted);
  }
}
