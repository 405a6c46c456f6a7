// The chunks that are in use, for a pass of the collector, while threads take more. Strongest
// property: where a chunk of a thread is in the list, so are those that it filled before and that
// aren't free, however long the looking takes: it is done twice, and what was opened since the
// first time is left to the next pass.
// Spec: docs/spec/recorder.md, "Draining".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace dial9::internal {

// When it was opened, and its index.
using ChunkInUse = std::pair<std::uint64_t, std::uint32_t>;

// By the time at which they were opened. `marked(group)`: of 64 chunks, those that may be in use;
// `opened_ns(index)`: none: it is free. Whoever sees a thread's chunk must see from then on what it
// did to its chunks before. Allocates nothing where `list` has room for all.
template <class Marked, class OpenedNs>
void list_chunks_in_use(std::uint32_t groups, const Marked& marked, const OpenedNs& opened_ns,
                        std::vector<ChunkInUse>& list) {
  const auto look = [&](std::uint64_t until_ns) {
    list.clear();
    for (std::uint32_t group = 0; group < groups; ++group) {
      for (std::uint64_t marks = marked(group); marks != 0; marks &= marks - 1) {
        const std::uint32_t i = group * 64 + static_cast<std::uint32_t>(std::countr_zero(marks));
        const std::optional<std::uint64_t> at_ns = opened_ns(i);
        if (at_ns && *at_ns <= until_ns) list.push_back({*at_ns, i});
      }
    }
  };
  look(~std::uint64_t{0});
  if (list.empty()) return;
  look(std::max_element(list.begin(), list.end())->first);
  std::sort(list.begin(), list.end());
}

}  // namespace dial9::internal
