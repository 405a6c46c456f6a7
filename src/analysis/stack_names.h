// Turns the stacks of a trace into frames of a flame tree: by the trace's own symbols, else by who
// can read the files of its modules. Strongest property: an address that neither names is shown as
// module and offset, or as itself; never as a neighbour. Spec: docs/spec/flame.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/flame.h"
#include "analysis/trace.h"
#include "symbolize/frame.h"

namespace dial9::analysis {

// Names addresses of files. The engine reads none: whoever asks it brings one.
class FrameNamer {
 public:
  virtual ~FrameNamer() = default;
  // The functions at an address of the file, innermost (inlined) first.
  // `is_return`: the address that a call returns to. Empty: no name is known for certain.
  virtual std::vector<symbolize::Frame> frames(std::string_view path, std::string_view build_id,
                                               std::uint64_t address, bool is_return) = 0;
  // What will be asked for of a file: addresses of code, so of the call, not what it returns to.
  // Together they may be found faster. Names nothing by itself.
  virtual void expect(std::string_view /*path*/, std::string_view /*build_id*/,
                      std::span<const std::uint64_t> /*addresses*/) {}
  // The same of an address of the kernel's. `boot_id`: which boot of which machine the trace is of;
  // empty: it doesn't say, or is of several.
  virtual std::vector<symbolize::Frame> kernel_frames(std::string_view /*boot_id*/,
                                                      std::uint64_t /*address*/,
                                                      bool /*is_return*/) {
    return {};
  }
  // What a reader should know about the names that were found so far of a file, or of the kernel
  // (kKernelModule and the boot's id): what was refused, what lacks, and the cure. `with_lines`:
  // also what lacks for lines alone.
  virtual std::vector<std::string> notes(std::string_view /*path*/, std::string_view /*build_id*/,
                                         bool /*with_lines*/) {
    return {};
  }
  // Answers so far that lack something only for now: asked for again they may have it.
  virtual std::uint64_t shortages() const { return 0; }
};

// What the innermost frame of a stack is: the instruction that was interrupted, or where a call
// returns to (of a stack that its own thread took).
enum class Leaf : std::uint8_t { kInterrupted, kReturn };

// What makes one frame of a tree.
enum class FrameBy : std::uint8_t {
  kFunction,  // a function is one frame; its place is where it is written
  kLine,      // each line of it that runs is one
};

// What the files of the modules, or the kernel, call an address of a process at a moment; empty:
// nothing is known for certain. Without the trace's own symbols.
std::vector<symbolize::Frame> frames_of(const Trace& trace, FrameNamer* namer, NameId run,
                                        std::uint64_t at_ns, std::uint64_t address, bool is_return);

struct OwnSymbols {
  std::vector<Symbol> symbols;  // innermost first; empty: none
  // Of a caller they are of the code that its call returns to, as its writer named the address:
  // the function is the caller's, but what is inlined there, and the line, may be another's.
  bool is_behind_call = false;
};

// The trace's own symbols of an address of a process, the innermost `most` of them.
OwnSymbols own_symbols(const Trace& trace, NameId run, std::uint64_t address, bool is_return,
                       std::size_t most);

// Whether own_symbols() has an inlined function or a line for a caller of the stack that may be
// another's.
bool has_symbols_behind_calls(const Trace& trace, std::uint32_t stack, Leaf leaf);

// Not thread-safe. Names each address once for each stretch of its process's modules.
class StackNames {
 public:
  // All outlive this. `namer` may be null.
  StackNames(const Trace& trace, FrameNamer* namer, FlameTree& tree,
             FrameBy by = FrameBy::kFunction)
      : trace_(trace), namer_(namer), tree_(tree), by_(by) {}

  // Leaf first, for FlameTree::add(); valid until the next call. `stack` may be kNoIndex: none.
  std::span<const FrameId> frames(std::uint32_t stack, std::uint64_t at_ns,
                                  Leaf leaf = Leaf::kInterrupted);
  // What a reader should know of the names so far.
  void add_notes(FlameHeading& heading) const;

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
  FrameId frame(const symbolize::Frame& found, std::string_view module);
  void expect(const Module& module, NameId run);

  const Trace& trace_;
  FrameNamer* namer_;
  FlameTree& tree_;
  FrameBy by_;
  std::unordered_map<Place, std::vector<FrameId>, Hash> known_;
  std::vector<FrameId> frames_;
  Leaf leaf_ = Leaf::kInterrupted;  // of the stacks that are asked for
  std::unordered_map<NameId, std::vector<std::uint64_t>> code_of_run_;  // sorted, each once
  std::vector<std::pair<NameId, Module>> expected_;
  std::uint64_t without_inlined_ = 0;  // callers that add_notes() tells of
};

}  // namespace dial9::analysis
