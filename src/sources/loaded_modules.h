// The modules that are loaded (program, libraries, vdso), as a reader needs them to name addresses
// offline. Strongest property: while the loader's lock is held nothing is allocated and no other
// lock is taken, so that no allocator, unwinder or constructor of the host's can wait in a circle.
// Not in a signal handler. Spec: docs/spec/modules.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "recorder/module_stream.h"

namespace dial9::internal {

// Loads and unloads since the process began: equal counts mean an equal set.
struct LoadCounts {
  std::uint64_t loads = 0;
  std::uint64_t unloads = 0;
  bool operator==(const LoadCounts&) const = default;
};

// Well under 1 µs, in which dlopen and dlclose of other threads may wait.
LoadCounts load_counts() noexcept;

struct LoadedModules {
  LoadCounts counts;  // as the modules were read
  std::vector<ModuleRecord> modules;
};
// By address. Throws std::bad_alloc.
LoadedModules loaded_modules();

}  // namespace dial9::internal
