// From an address to its row in this process: the cache first, else the module's table, read
// through guarded copies. One ProcessTables serves one walk and carries its budget.
// Async-signal-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/cfi.h"
#include "unwind/modules.h"
#include "unwind/process_memory.h"
#include "unwind/row.h"
#include "unwind/row_cache.h"
#include "unwind/unwind.h"

namespace dial9::unwind {

// The process's cache: also used by whoever unwinds copies of this process's stacks.
extern RowCache g_row_cache;

class ProcessTables {
 public:
  // What one walk may copy from tables: several times what deep stacks of new addresses need.
  static constexpr std::int64_t kBudgetBytes = 512 * 1024;

  explicit ProcessTables(const RegisterNumbers& numbers) noexcept;
  ProcessTables(const ProcessTables&) = delete;
  ProcessTables& operator=(const ProcessTables&) = delete;

  // The row for `pc`; failure() explains kNoTable, kCorrupt and kUnsupported.
  Row row(std::uint64_t pc) noexcept {
    Row row;
    return g_row_cache.find(pc, row) ? row : find_row(pc);
  }
  // The rules behind a row, that of register `extra` among them.
  bool rules(std::uint64_t pc, unsigned extra, FrameRules& rules) noexcept;
  TableSource& source() noexcept { return source_; }
  // Copies the code at `pc`; returns how many bytes are readable.
  std::size_t read_code(std::uint64_t pc, std::uint8_t* to, std::size_t bytes) noexcept {
    return memory_.copy(pc, to, bytes);
  }

  StopReason failure() const noexcept { return failure_; }

 private:
  Row find_row(std::uint64_t pc) noexcept;
  std::optional<Module> find_module(const ModuleReader& modules, std::uint64_t pc) noexcept;
  TableError read(const ModuleReader& modules, const Module& module, std::uint64_t pc,
                  unsigned extra, FrameRules& rules, bool& covers) noexcept;

  const RegisterNumbers& numbers_;
  ProcessMemory memory_;
  TableSource source_;
  StopReason failure_ = StopReason::kNoTable;
  // The last module that may be unloaded: its stamp holds for this walk, since its frames are on
  // the stack.
  std::optional<Module> unloadable_;
};

}  // namespace dial9::unwind
