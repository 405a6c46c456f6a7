// The fuzzer chooses unwind tables, registers and a stack, for either processor: a walk ends within
// its budget, reads nothing but the bytes given, and says why it ended. Input: choices (1 byte);
// pc, sp, fp, one register (8 bytes each); the tables' length (2 bytes); the tables; the stack.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "check.h"
#include "unwind/arch.h"
#include "unwind/cfi.h"
#include "unwind/modules.h"
#include "unwind/registers.h"
#include "unwind/row.h"
#include "unwind/stack_memory.h"
#include "unwind/unwind.h"
#include "unwind/walker.h"

namespace dial9::fuzz {
namespace {

using namespace dial9::unwind;

constexpr std::uint64_t kTables = 0x100000;  // where the tables and the code are said to lie
constexpr std::uint64_t kStack = 0x700000;
constexpr std::int64_t kBudgetBytes = 256 * 1024;

// Tables in a buffer that begins with an .eh_frame_hdr, read as those of a loaded module are.
class BufferTables {
 public:
  BufferTables(std::vector<std::uint8_t> bytes, const RegisterNumbers& numbers)
      : bytes_(std::move(bytes)), numbers_(numbers), source_{copy, this, kBudgetBytes} {
    module_.begin = kTables;
    module_.end = kTables + bytes_.size();
    module_.eh_frame_hdr = kTables;
  }

  Row row(std::uint64_t pc) {
    FrameRules rules;
    if (!read(pc, kNoRegister, rules)) {
      return {failure_ == StopReason::kNoTable ? Row::Kind::kNoTable : Row::Kind::kCorrupt};
    }
    return compact(source_, rules, numbers_);
  }
  bool rules(std::uint64_t pc, unsigned extra, FrameRules& rules) { return read(pc, extra, rules); }
  TableSource& source() { return source_; }
  StopReason failure() const { return failure_; }
  std::size_t read_code(std::uint64_t pc, std::uint8_t* to, std::size_t bytes) {
    return copy(this, pc, to, bytes);
  }
  std::int64_t budget_bytes() const { return source_.budget_bytes; }

 private:
  bool read(std::uint64_t pc, unsigned extra, FrameRules& rules) {
    const ModuleReader modules;
    TableError error = TableError::kNone;
    const std::uint64_t entry = modules.find_entry(module_, pc, source_, error);
    bool covers = false;
    if (entry != 0) {
      RegisterNumbers numbers = numbers_;
      numbers.extra = extra;
      const FrameEntry place{entry, module_.end, module_.begin};
      error = read_frame_rules(source_, place, pc, numbers, rules, covers);
    }
    failure_ = to_stop_reason(error);
    return error == TableError::kNone && covers;
  }

  static std::size_t copy(void* self, std::uint64_t address, void* to, std::size_t size) {
    const auto& bytes = static_cast<BufferTables*>(self)->bytes_;
    const std::uint64_t offset = address - kTables;
    if (offset >= bytes.size()) {
      return 0;
    }
    const std::size_t part = std::min<std::size_t>(size, bytes.size() - offset);
    std::memcpy(to, bytes.data() + offset, part);
    return part;
  }

  std::vector<std::uint8_t> bytes_;
  const RegisterNumbers& numbers_;
  TableSource source_;
  Module module_;
  StopReason failure_ = StopReason::kNoTable;
};

struct Input {
  std::uint8_t choices = 0;
  std::array<std::uint64_t, 4> words{};
  std::uint16_t table_bytes = 0;
};
constexpr std::size_t kHeadBytes = 1 + 4 * 8 + 2;

template <class Arch>
void walk(const Input& input, std::vector<std::uint8_t> tables, std::vector<std::uint8_t> stack) {
  Registers registers;
  registers.set(Arch::kPc, input.words[0]);
  registers.set(Arch::kNumbers.sp, input.words[1]);
  registers.set(Arch::kNumbers.fp, input.words[2]);
  registers.set(30 % Arch::kPc, input.words[3]);
  BufferTables source(std::move(tables), Arch::kNumbers);
  const StackCopy copy{.address = kStack, .bytes = std::as_bytes(std::span(stack))};
  CopiedStack memory(copy);
  std::array<std::uint64_t, 64> frames;
  Options options;
  options.strategy = static_cast<Strategy>(input.choices / 2 % 3);
  options.skip = input.choices / 8 % 4;
  const Result result =
      Walker<Arch, CopiedStack, BufferTables>(registers, memory, source, frames, options).run();
  check(result.count <= frames.size(), "no more frames than there is room for");
  check(result.truncated() == (result.stop != StopReason::kEndOfStack), "truncation is said");
  check(result.stop != StopReason::kFramesFull || result.count == frames.size(),
        "the room is used up where that is the reason");
  check(source.budget_bytes() > -4096, "a walk ends when its budget does");
}

}  // namespace
}  // namespace dial9::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dial9::fuzz;
  Input input;
  if (size < kHeadBytes) {
    return 0;
  }
  input.choices = data[0];
  std::memcpy(input.words.data(), data + 1, sizeof input.words);
  std::memcpy(&input.table_bytes, data + 1 + sizeof input.words, 2);
  const std::span rest(data + kHeadBytes, size - kHeadBytes);
  const std::size_t split = std::min<std::size_t>(input.table_bytes, rest.size());
  std::vector<std::uint8_t> tables(rest.begin(), rest.begin() + split);
  std::vector<std::uint8_t> stack(rest.begin() + split, rest.end());
  if (input.choices % 2 == 0) {
    walk<dial9::unwind::X86_64>(input, std::move(tables), std::move(stack));
  } else {
    walk<dial9::unwind::Aarch64>(input, std::move(tables), std::move(stack));
  }
  return 0;
}
