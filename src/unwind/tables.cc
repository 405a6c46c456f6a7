// See tables.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/tables.h"

#include "unwind/general_step.h"

namespace dial9::unwind {

constinit RowCache g_row_cache{};

namespace {

std::size_t copy_from_process(void* self, std::uint64_t address, void* to, std::size_t size) {
  return static_cast<ProcessMemory*>(self)->copy(address, to, size);
}

}  // namespace

ProcessTables::ProcessTables(const RegisterNumbers& numbers) noexcept
    : numbers_(numbers), source_{copy_from_process, &memory_, kBudgetBytes} {}

TableError ProcessTables::read(const ModuleReader& modules, const Module& module, std::uint64_t pc,
                               unsigned extra, FrameRules& rules, bool& covers) noexcept {
  RegisterNumbers numbers = numbers_;
  numbers.extra = extra;
  covers = false;
  TableError error = TableError::kNone;
  const std::uint64_t entry = modules.find_entry(module, pc, source_, error);
  if (entry != 0) {
    const FrameEntry place{entry, module.end, module.begin};
    error = read_frame_rules(source_, place, pc, numbers, rules, covers);
  }
  failure_ = to_stop_reason(error);
  return error;
}

std::optional<Module> ProcessTables::find_module(const ModuleReader& modules,
                                                 std::uint64_t pc) noexcept {
  if (unloadable_ && unloadable_->holds(pc)) {
    return unloadable_;
  }
  std::optional<Module> module = modules.find(pc, source_);
  if (module && module->stamp != 0) {
    unloadable_ = module;
  }
  return module;
}

Row ProcessTables::find_row(std::uint64_t pc) noexcept {
  Row row;
  const ModuleReader modules;
  const auto module = find_module(modules, pc);
  if (!module) {
    failure_ = modules.is_prepared() ? StopReason::kNoTable : StopReason::kNotPrepared;
    return row;
  }
  const std::uint64_t key = pc ^ module->stamp;
  if (module->stamp != 0 && g_row_cache.find(key, row)) {
    return row;
  }
  FrameRules rules;
  bool covers = false;
  switch (read(modules, *module, pc, kNoRegister, rules, covers)) {
    case TableError::kNone:
      if (covers) {
        row = compact(source_, rules, numbers_);
      }
      break;
    case TableError::kCorrupt: row.kind = Row::Kind::kCorrupt; break;
    case TableError::kUnsupported: row.kind = Row::Kind::kUnsupported; break;
    case TableError::kUnreadable: case TableError::kBudget:
      row.kind = Row::Kind::kCorrupt;
      return row;  // true of this moment only
  }
  g_row_cache.store(key, row);
  return row;
}

bool ProcessTables::rules(std::uint64_t pc, unsigned extra, FrameRules& rules) noexcept {
  const ModuleReader modules;
  const auto module = find_module(modules, pc);
  bool covers = false;
  return module && read(modules, *module, pc, extra, rules, covers) == TableError::kNone && covers;
}

}  // namespace dial9::unwind
