// SPDX-License-Identifier: Apache-2.0
#include "cli/load_trace.h"

#include <algorithm>
#include <span>

#include "analysis/loader.h"

namespace dial9::cli {

analysis::Trace load_trace(const std::vector<Input>& inputs, std::uint64_t memory_mib,
                           Outcome& outcome) {
  analysis::LoadOptions options;
  options.max_memory_bytes = std::min(memory_mib, ~std::uint64_t{0} >> 20) << 20;
  analysis::Loader loader(options);
  Progress progress("loading", inputs);
  for (const Input& input : inputs) {
    const std::uint64_t before = loader.events();
    loader.begin_input(input.name);
    Result<void> result = read_input(
        input, [&](std::span<const std::uint8_t> bytes) { return loader.feed(bytes); }, progress);
    if (Result<void> ended = loader.end_input(); result && !ended) {
      result = ended;
    }
    outcome.add(input.name, result, loader.events() - before);
  }
  return loader.finish();
}

}  // namespace dial9::cli
