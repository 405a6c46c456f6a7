// Functions, inlined ones and lines for addresses of modules that ran elsewhere or earlier: finds
// the files of each module by its build id, reads their symbols, and lets a process of its own read
// their debug information. Strongest property: a file whose build id isn't the module's is never
// used, and is named; so is a module for which there is no file.
// Spec: docs/spec/flame.md, "Names" and "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "symbolize/debuginfod.h"
#include "symbolize/dwarf_worker.h"
#include "symbolize/frame.h"
#include "symbolize/frame_cache.h"
#include "symbolize/kernel_symbols.h"

namespace dial9::symbolize {

struct SymbolizerOptions {
  // Looked into first: by the file's name, the name with ".debug", and by build id
  // (".build-id/ab/cdef.debug").
  std::vector<std::string> directories = {};
  // Where a distribution puts split debug files.
  std::string debug_root = "/usr/lib/debug";
  DwarfWorkerOptions dwarf = {};
  FrameCacheOptions cache = {};
  DebuginfodOptions debuginfod = {};
  bool wants_lines = false;  // modules that have none are named in notes()
  // Processes that read debug information at a time, where many addresses are expected: 1 or 2.
  unsigned readers = std::thread::hardware_concurrency();
  // What was found about addresses is kept until it takes so much; then each is looked up again
  // when it is asked for.
  std::size_t most_known_bytes = std::size_t{256} << 20;
  std::string kernel_list = "/proc/kallsyms";
  std::string boot_id = own_boot_id();
};

// Whose the notes on functions of the kernel are; their build id is the boot's id.
inline constexpr std::string_view kKernelNotes = "kernel";

// Reads files, and starts processes that read debug information; not thread-safe. Holds at most
// 1 GiB of symbols, and about most_known_bytes of what it found.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // The functions at an address of the module's file, innermost (inlined) first, demangled.
  // `is_return`: the address that a call returns to. Empty: none is known.
  std::vector<Frame> frames(std::string_view path, std::string_view build_id, std::uint64_t address,
                            bool is_return);

  // frames() will ask for these, less one where they are return addresses: looks them up together,
  // which takes a tenth of the time of one by one.
  void expect(std::string_view path, std::string_view build_id,
              std::span<const std::uint64_t> addresses);

  // The kernel's function at an address, where `boot_id` is this machine's since it started.
  std::vector<Frame> kernel_frames(std::string_view boot_id, std::uint64_t address, bool is_return);

  // Answers so far that lack something only since the system had too little of something (memory,
  // processes, descriptors): asked for again after a while they may have it.
  std::uint64_t shortages() const;

  // Saves what the cache on disk doesn't have yet; so does the destructor.
  void save();

  // What was not used or not found, and what helps; once each, by now.
  std::vector<std::string> notes() const;
  // Those on one module, or on the kernel's functions. `wants_lines`: also what only lines lack.
  std::vector<std::string> notes_of(std::string_view path, std::string_view build_id,
                                    bool wants_lines) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dial9::symbolize
