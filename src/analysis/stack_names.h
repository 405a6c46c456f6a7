// Turns the stacks of a trace into frames of a flame tree: by the trace's own symbols, else by who
// can read the files of its modules. Strongest property: an address that neither names is shown as
// module and offset, or as itself; never as a neighbour. Spec: docs/spec/flame.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/flame.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// Names addresses of files. The engine reads none: whoever asks it brings one.
class FrameNamer {
 public:
  virtual ~FrameNamer() = default;
  // The functions at an address of the file, innermost (inlined) first, as a person reads them.
  // `is_return`: the address that a call returns to. Empty: no name is known for certain.
  virtual std::vector<std::string> names(std::string_view path, std::string_view build_id,
                                         std::uint64_t address, bool is_return) = 0;
};

// What the innermost frame of a stack is: the instruction that was interrupted, or where a call
// returns to (of a stack that its own thread took).
enum class Leaf : std::uint8_t { kInterrupted, kReturn };

// What the files of the modules call an address of a process at a moment; empty: nothing is known
// for certain. Without the trace's own symbols.
std::vector<std::string> names_of(const Trace& trace, FrameNamer* namer, NameId run,
                                  std::uint64_t at_ns, std::uint64_t address, bool is_return);

// Not thread-safe. Names each address once for each stretch of its process's modules.
class StackNames {
 public:
  // All outlive this. `namer` may be null.
  StackNames(const Trace& trace, FrameNamer* namer, FlameTree& tree)
      : trace_(trace), namer_(namer), tree_(tree) {}

  // Leaf first, for FlameTree::add(); valid until the next call. `stack` may be kNoIndex: none.
  std::span<const FrameId> frames(std::uint32_t stack, std::uint64_t at_ns,
                                  Leaf leaf = Leaf::kInterrupted);

 private:
  struct Place {
    std::uint64_t address = 0;
    NameId run = kNoName;
    std::uint32_t stretch = 0;
    bool is_return = false;
    bool operator==(const Place&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const;
  };
  const std::vector<FrameId>& frames_at(const Place& place, std::uint64_t at_ns);
  std::vector<FrameId> make_frames(const Place& place, std::uint64_t at_ns);

  const Trace& trace_;
  FrameNamer* namer_;
  FlameTree& tree_;
  std::unordered_map<Place, std::vector<FrameId>, Hash> known_;
  std::vector<FrameId> frames_;
};

}  // namespace dial9::analysis
