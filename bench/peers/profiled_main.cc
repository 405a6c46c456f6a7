// Work for profilers to watch: profiled cpu|heap. The same each time, one thread, no dial9 in it:
// profilers are preloaded or look from outside. Prints nothing; who runs it takes the time.
//   cpu: sorting, hashing, formatting, a tree of calls: about a second.
//   heap: blocks of 16 bytes to 8 KiB that replace each other among 4,096: about half a second.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

volatile std::uint64_t g_result = 0;

[[gnu::noinline]] std::uint64_t sort_some(std::mt19937_64& random) {
  std::vector<std::uint64_t> values(2'000);
  for (std::uint64_t& value : values) value = random();
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

[[gnu::noinline]] std::uint64_t hash_some(std::mt19937_64& random) {
  std::unordered_map<std::string, std::uint64_t> map;
  for (int i = 0; i < 500; ++i) map["key " + std::to_string(random() % 300)] += 1;
  return map.size();
}

[[gnu::noinline]] std::uint64_t format_some(std::mt19937_64& random) {
  std::array<char, 128> text;
  std::uint64_t sum = 0;
  for (int i = 0; i < 500; ++i) {
    std::snprintf(text.data(), text.size(), "%.6f %lx", static_cast<double>(random()) / 3,
                  random());
    sum += std::strlen(text.data());
  }
  return sum;
}

[[gnu::noinline]] std::uint64_t call_deep(int depth, std::mt19937_64& random) {
  if (depth > 0) return call_deep(depth - 1, random) + 1;
  return sort_some(random) + hash_some(random) + format_some(random);
}

void use_cpu() {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'500; ++i) g_result = g_result + call_deep(30, random);
}

void use_heap() {
  constexpr std::size_t kBlocks = 4096;
  std::mt19937_64 random(1);
  std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
  for (int i = 0; i < 8'000'000; ++i) {
    const std::uint64_t draw = random();
    const std::size_t size = draw % 64 == 0 ? 8192 : 16 + draw / 64 % 240;
    std::unique_ptr<char[]>& block = blocks[draw >> 52];
    block = std::make_unique_for_overwrite<char[]>(size);
    block[0] = static_cast<char>(size);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "cpu") == 0) {
    use_cpu();
  } else if (argc == 2 && std::strcmp(argv[1], "heap") == 0) {
    use_heap();
  } else {
    std::fprintf(stderr, "usage: profiled cpu|heap\n");
    return 2;
  }
  return 0;
}
