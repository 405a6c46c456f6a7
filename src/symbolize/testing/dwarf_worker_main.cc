// The process that reads debug information, for tests: dial9 itself is one when it is told so.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_worker.h"

int main() { return dial9::symbolize::run_dwarf_worker(); }
