// Allocates 64 bytes and frees them N times, for callgrind to count: pair CASE N. Built twice: with
// dial9::heap, whose gate is closed (pair_off) or open at a rate at which nothing is a sample
// (pair_on, live set on), and without it, where both cases are the C library's own.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#if DIAL9_PAIR_WITH_HEAP
#include "heap/hooks.h"
#endif

namespace {

bool open_gate() {
#if DIAL9_PAIR_WITH_HEAP
  using namespace dial9::heap;
  g_gate.rate_bytes = kMostRate;
  g_gate.tracks_live = true;
  g_gate.seed = 1;
  __atomic_store_n(&g_gate.floor, kGeneration, __ATOMIC_RELEASE);
#endif
  return true;
}

[[gnu::noinline]] void pair() {
  void* block = std::malloc(64);
  asm volatile("" : "+r"(block) : : "memory");
  std::free(block);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (std::strcmp(argv[1], "pair_on") == 0 && !open_gate()) return 3;
  const long count = std::atol(argv[2]);
  for (int i = 0; i < 10; ++i) pair();  // each thread's first ones draw, and fill caches
  for (long i = 0; i < count; ++i) pair();
  return 0;
}
