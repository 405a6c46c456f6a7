// Expressions that linkers and compilers write, and ones that nobody should.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <vector>

#include "unwind/testing/table_builder.h"

namespace dial9::unwind {
namespace {

using testing::BufferSource;

constexpr std::uint64_t kAddress = 0x7000;

struct Memory {
  std::map<std::uint64_t, std::uint64_t> words;
  static bool load(void* self, std::uint64_t address, std::uint64_t& word) {
    const auto& words = static_cast<Memory*>(self)->words;
    const auto found = words.find(address);
    if (found == words.end()) {
      return false;
    }
    word = found->second;
    return true;
  }
};

ExpressionResult run(std::vector<std::uint8_t> bytes, const Registers& registers = {},
                     Memory memory = {}) {
  const std::uint64_t size = bytes.size();
  BufferSource buffer(kAddress, std::move(bytes));
  TableSource source = buffer.source();
  return evaluate(source, {&Memory::load, &memory}, {kAddress, size}, registers, false, 0);
}

TEST(Expression, TheLinkageStubsCfaDependsOnTheInstruction) {
  // rsp + 8 + (((rip & 15) >= 11) << 3), which every linker writes for its stubs.
  const std::vector<std::uint8_t> stub{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
  Registers registers;
  registers.set(7, 0x1000);
  registers.set(16, 0x40000a);
  EXPECT_EQ(run(stub, registers).value, 0x1008u);
  registers.set(16, 0x40000b);
  EXPECT_EQ(run(stub, registers).value, 0x1010u);
}

TEST(Expression, ALoadReadsTheStack) {
  Registers registers;
  registers.set(6, 0x2000);
  const ExpressionResult result = run({0x76, 0x78, 0x06}, registers, {{{0x1ff8, 0x5000}}});
  EXPECT_EQ(result.error, TableError::kNone);
  EXPECT_EQ(result.value, 0x5000u);
}

TEST(Expression, AnUnreadableLoadIsAnError) {
  Registers registers;
  registers.set(6, 0x2000);
  EXPECT_EQ(run({0x76, 0x78, 0x06}, registers).error, TableError::kUnreadable);
}

TEST(Expression, AnUnknownRegisterIsNamed) {
  const ExpressionResult result = run({0x73, 0});
  EXPECT_EQ(result.error, TableError::kUnsupported);
  EXPECT_EQ(result.missing_register, 3u);
}

TEST(Expression, ArithmeticIsThatOfTheStandard) {
  const auto value = [](std::vector<std::uint8_t> bytes) {
    const ExpressionResult result = run(std::move(bytes));
    EXPECT_EQ(result.error, TableError::kNone);
    return static_cast<std::int64_t>(result.value);
  };
  EXPECT_EQ(value({0x08, 200}), 200);                    // const1u
  EXPECT_EQ(value({0x09, 200}), -56);                    // const1s
  EXPECT_EQ(value({0x0b, 0xfe, 0xff}), -2);              // const2s
  EXPECT_EQ(value({0x11, 0x7f}), -1);                    // consts
  EXPECT_EQ(value({0x35, 0x33, 0x1c}), 2);               // 5 - 3
  EXPECT_EQ(value({0x35, 0x33, 0x16, 0x1c}), -2);        // swapped
  EXPECT_EQ(value({0x31, 0x32, 0x34, 0x17, 0x22, 0x1c}), 1);  // rot: 4 1 2; 4 - (1 + 2)
  EXPECT_EQ(value({0x35, 0x1f}), -5);                    // neg
  EXPECT_EQ(value({0x35, 0x1f, 0x19}), 5);               // abs
  EXPECT_EQ(value({0x31, 0x08, 64, 0x24}), 0);           // shifts beyond the word
  EXPECT_EQ(value({0x35, 0x1f, 0x31, 0x26}), -3);        // shra
  EXPECT_EQ(value({0x31, 0x1f, 0x32, 0x2d}), 1);         // -1 < 2: signed
}

TEST(Expression, AStackThatRunsEmptyOrOverIsAnError) {
  EXPECT_EQ(run({0x22}).error, TableError::kCorrupt);
  EXPECT_EQ(run({}).error, TableError::kCorrupt);
  EXPECT_EQ(run(std::vector<std::uint8_t>(40, 0x31)).error, TableError::kUnsupported);
}

TEST(Expression, BranchesAndCallsAreUnsupported) {
  for (const std::uint8_t op : std::to_array<std::uint8_t>({0x28, 0x2f, 0x98, 0x9f})) {
    EXPECT_EQ(run({0x31, 0x31, op, 0, 0}).error, TableError::kUnsupported);
  }
}

}  // namespace
}  // namespace dial9::unwind
