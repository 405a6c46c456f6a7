// Which loaded module covers an address, and where its unwind tables are.
//
// refresh_modules() builds an immutable, sorted table outside signal handlers and publishes it with
// one atomic exchange; readers are counted, and a table is freed only when none is inside. glibc's
// `_dl_find_object` (2.35 and later; lock-free and async-signal-safe) finds what was loaded since
// and tells when a known module has gone; without it the table alone answers.
//
// A module of the program's own start (the executable and what it needs) can't be unloaded, so rows
// for its addresses hold for ever. Any other may be replaced by another at the same addresses: it
// bears a stamp that becomes part of its rows' key, made of its place, the head of its tables, its
// notes (the build id), and the table's generation. So only a module without a build id that takes
// the place of one with the very same layout is mistaken for it, until the next refresh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/table_reader.h"

namespace dial9::unwind {

struct Module {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t eh_frame_hdr = 0;  // 0: none
  std::uint64_t stamp = 0;         // 0: never unloaded
  std::uint64_t notes = 0;         // of its PT_NOTE segments together; 0: none, or too far apart
  std::uint64_t notes_bytes = 0;
  // The published table's coarse index over eh_frame_hdr's search table, if the module is in it.
  std::uint32_t index_begin = 0;
  std::uint32_t index_size = 0;
  std::uint32_t entry_count = 0;
  std::uint64_t search_table = 0;

  bool holds(std::uint64_t address) const { return address >= begin && address < end; }
};

// Widens the range of notes by a segment of `bytes` at `begin`.
void add_notes(Module& module, std::uint64_t begin, std::uint64_t bytes) noexcept;

// Rebuilds the table if modules came or went. Not in a signal handler. False: out of memory.
bool refresh_modules() noexcept;

// A look into the published table. Holds it while alive: short-lived, on one thread's stack.
// Async-signal-safe.
class ModuleReader {
 public:
  ModuleReader() noexcept;
  ~ModuleReader();
  ModuleReader(const ModuleReader&) = delete;
  ModuleReader& operator=(const ModuleReader&) = delete;

  // False until refresh_modules() ran.
  bool is_prepared() const { return table_ != nullptr; }

  // The module that is loaded at `address` now. `tables` is where its stamp is read from.
  std::optional<Module> find(std::uint64_t address, TableSource& tables) const;

  // The frame description entry that begins nearest below `pc`; it may still not cover it. 0: none.
  std::uint64_t find_entry(const Module& module, std::uint64_t pc, TableSource& tables,
                           TableError& error) const;

 private:
  std::uint64_t make_stamp(const Module& module, TableSource& tables) const;

  const struct ModuleTable* table_;
};

// Tests only: behave as with a glibc that has no _dl_find_object.
void use_dl_find_object(bool allowed) noexcept;

}  // namespace dial9::unwind
