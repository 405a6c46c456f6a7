// The process that reads debug information, for tests: dial9 itself is one when it is told so. The
// first argument: how many bytes an answer has at most, about.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "symbolize/dwarf_worker.h"

int main(int argc, char** argv) {
  return argc < 2 ? dial9::symbolize::run_dwarf_worker()
                  : dial9::symbolize::run_dwarf_worker(std::strtoul(argv[1], nullptr, 10));
}
