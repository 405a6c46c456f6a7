// The process that reads debug information, for tests: dial9 itself is one when it is told so. The
// first argument: how many bytes an answer has at most, about. The second and third: it ends as it
// would by a crash when it is to look up an address from the one up to the other.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>

#include "symbolize/dwarf_worker.h"

int main(int argc, char** argv) {
  const auto number = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
  if (argc < 2) return dial9::symbolize::run_dwarf_worker();
  if (argc < 4) return dial9::symbolize::run_dwarf_worker(number(1));
  return dial9::symbolize::run_dwarf_worker(
      number(1), [from = number(2), to = number(3)](std::uint64_t address) {
        if (address >= from && address < to) ::_exit(1);
      });
}
