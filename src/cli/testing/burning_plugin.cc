// A library to load, burn CPU time in, and unload. It is built twice with one layout, so that the
// second takes the place of the first; only the function's name differs.
// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <cstdint>

static std::uint64_t cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

[[gnu::always_inline]] static inline void burn_a_little(volatile std::uint64_t& kept) {
  for (int i = 0; i < 2'000; ++i) kept = kept * 3 + 1;
}

extern "C" std::uint64_t DIAL9_BURN(std::uint64_t ms) {
  volatile std::uint64_t kept = 1;
  for (const std::uint64_t end = cpu_ms() + ms; cpu_ms() < end;) {
    burn_a_little(kept);
  }
  return kept;
}

extern "C" std::uint64_t plugin_burn(std::uint64_t ms) { return DIAL9_BURN(ms) + 1; }
