// The polls of a task before a moment, and those of them that reach into it: usually the last one
// or none; where several workers polled the task at a time, the two that end last decide
// everything. O(log n) a question, whatever the number of workers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

// Of a trace that outlives this. Memory: 12 bytes a poll of tasks whose polls overlap, else none.
class PollReach {
 public:
  explicit PollReach(const Trace& trace);
  struct Before {
    bool has_polls = false;
    bool is_cut = false;       // no end was recorded of the last one, or of one it overlaps with
    std::uint64_t end_ns = 0;  // of the one that ends last
  };
  // Of the first `begun` polls of the task, those that begin before `at_ns`. Puts into `polls` the
  // two of them that end last, as far as they end after it, by start.
  Before before(std::uint32_t task, std::uint32_t begun, std::uint64_t at_ns,
                std::vector<std::uint32_t>& polls) const;
  std::size_t bytes() const;

 private:
  // Of a task's first so many polls; kNoIndex: none.
  struct Reach {
    std::uint32_t longest = kNoIndex;
    std::uint32_t second = kNoIndex;
    bool is_cut = false;
  };
  bool overlap(Range polls) const;
  bool ends_later(std::uint32_t poll, std::uint32_t than) const;

  const Trace& trace_;
  std::unordered_map<std::uint32_t, std::uint32_t> first_;  // in reach_, by task
  std::vector<Reach> reach_;
};

}  // namespace dial9::analysis
