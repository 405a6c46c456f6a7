// Which file of which process an address belongs to at a moment. Strongest property: where modules
// may just have come or gone, or a change of them may be missing in the trace, an address has none.
// Spec: docs/spec/modules.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/names.h"

namespace dial9::analysis {

// A file that is mapped at [begin, end). An address of the file is one of the process less `bias`.
struct Module {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t bias = 0;
  NameId path = kNoName;
  NameId build_id = kNoName;  // in hexadecimal; kNoName: it has none
  auto operator<=>(const Module&) const = default;
};

// Of a set of modules, as its ModuleEvent has them.
struct ModuleSetTimes {
  std::uint64_t epoch = 0;
  std::uint64_t since_ns = 0;
  std::uint64_t before_held_ns = 0;  // 0: it is the first
  std::uint64_t seen_ns = 0;         // last
  bool only_added = false;           // to the set before
};

class Modules {
 public:
  void add(NameId run, const ModuleSetTimes& times, const Module& module);
  // After the last add(), before the first question.
  void sort();

  // nullopt: in none, or it isn't known for certain in which. O(log n).
  std::optional<Module> at(NameId run, std::uint64_t at_ns, std::uint64_t address) const;
  // Equal for two moments of a run at which at() answers alike.
  std::uint32_t stretch(NameId run, std::uint64_t at_ns) const;

  // What was ever loaded, some of it more than once.
  std::span<const Module> all() const { return modules_; }
  bool empty() const { return rows_.empty() && sets_.empty(); }
  std::size_t bytes() const;

 private:
  struct Row {
    NameId run = kNoName;
    ModuleSetTimes times;
    Module module;
  };
  struct Set {
    NameId run = kNoName;
    ModuleSetTimes times;
    std::uint32_t first = 0;  // of modules_, by `begin`
    std::uint32_t last = 0;
  };
  // Which sets answer for a moment. kBoth: where they say the same.
  enum class Answer : std::uint8_t { kNone, kBefore, kNext, kBoth };
  struct Place {
    std::size_t next = 0;  // of sets_; the one before it is `next` - 1
    Answer answer = Answer::kNone;
  };
  Place place(NameId run, std::uint64_t at_ns) const;
  std::optional<Module> in(const Set& set, std::uint64_t address) const;

  std::vector<Row> rows_;        // until sort()
  std::vector<Set> sets_;        // by (run, since)
  std::vector<Module> modules_;  // of the sets, one after the other
};

}  // namespace dial9::analysis
