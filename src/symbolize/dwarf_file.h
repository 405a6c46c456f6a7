// Functions, inlined ones and lines at an address, from an ELF file's DWARF, by libdw. Strongest
// property: an address that no unit claims has no frame, and what a linker left out (at addresses
// that hold no code) claims none. libdw isn't bounded on files that were made to harm it: only
// dwarf_worker.h opens files that nobody vouches for. Spec: docs/spec/flame.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "symbolize/frame.h"

namespace dial9::symbolize {

// Not thread-safe.
class DwarfFile {
 public:
  static constexpr std::size_t kMostFrames = 64;  // of one address

  // Whether this was built with libdw; else open() always answers kUnsupported.
  static bool is_supported();

  // `fd` is of an ELF file or of its debug file, and stays open as long as this. `most_bytes`: of
  // memory, beyond which what was read is forgotten and read again when it is needed.
  // Errors: kNotFound (no DWARF in it), kCorrupt, kUnsupported.
  static Result<DwarfFile> open(int fd, std::size_t most_bytes);
  ~DwarfFile();
  DwarfFile(DwarfFile&&) noexcept;
  DwarfFile& operator=(DwarfFile&&) noexcept;

  // Innermost first, at most kMostFrames. The last is the function that isn't inlined; its name is
  // empty where DWARF doesn't say it. Empty: nothing is known of the address. The first look into a
  // unit reads it (0.1 ms and more), further ones take about 5 µs. Ends the process (exit code 1)
  // where the file must be read again and can't be.
  std::vector<Frame> frames(std::uint64_t address);

 private:
  struct State;
  explicit DwarfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dial9::symbolize
