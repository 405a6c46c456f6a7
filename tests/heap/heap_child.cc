// A program that knows nothing of dial9: leaks and frees known amounts at a known site, in two
// threads, and says in the file that it is given where the site is.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" const char __start_heap_child_site, __stop_heap_child_site;  // the linker's

namespace {

struct Block {
  char bytes[1'000];
};

[[gnu::noinline, gnu::section("heap_child_site")]] Block* make_block() {
  Block* block = new Block;
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

std::vector<Block*> g_leaked;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) return 3;
  std::fprintf(file, "%ju %ju\n", reinterpret_cast<std::uintptr_t>(&__start_heap_child_site),
               reinterpret_cast<std::uintptr_t>(&__stop_heap_child_site));
  std::fclose(file);
  std::vector<Block*> handed_over;
  std::thread maker([&] {
    for (int i = 0; i < 20'000; ++i) {
      (i % 5 == 0 ? g_leaked : handed_over).push_back(make_block());
    }
  });
  maker.join();
  for (Block* block : handed_over) delete block;
  return g_leaked.size() == 4'000 ? 0 : 4;
}
