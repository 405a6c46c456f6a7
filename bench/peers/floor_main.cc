// The floor that every recorder stands on: an empty loop, a clock read with a 16-byte store into a
// thread-local ring by rdtsc, and the same by clock_gettime and memcpy, as one would write it by
// hand. Strongest property: nothing else is in the loops. Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#include <x86intrin.h>

#include <cstdint>
#include <cstring>

#include "harness.h"

namespace {

using namespace dial9_bench;

constexpr std::size_t kRingBytes = 64 << 10;

struct Ring {
  alignas(64) unsigned char bytes[kRingBytes];
  std::size_t offset;
};
thread_local Ring t_ring;

struct Record {
  std::uint64_t stamp;
  std::uint64_t value;
};

void store(const Record& record) {
  std::memcpy(t_ring.bytes + t_ring.offset, &record, sizeof record);
  t_ring.offset = (t_ring.offset + sizeof record) & (kRingBytes - 1);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  for (const std::uint32_t threads : kThreadCounts) {
    report("empty", threads, measure(options, threads, [](std::uint64_t) {}), kNotCounted);
    report("rdtsc_store", threads,
           measure(options, threads, [](std::uint64_t i) { store({__rdtsc(), i}); }), kNotCounted);
    report("clock_gettime_memcpy", threads,
           measure(options, threads, [](std::uint64_t i) { store({monotonic_ns(), i}); }),
           kNotCounted);
  }
}
