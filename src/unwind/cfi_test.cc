// Entries written byte by byte: what each instruction means, and what corrupt ones come to.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "unwind/arch.h"
#include "unwind/row.h"
#include "unwind/testing/table_builder.h"

namespace dial9::unwind {
namespace {

using testing::BufferSource;
using testing::EntryBuilder;
using Kind = RegisterRule::Kind;

constexpr std::uint64_t kTables = 0x7000;

struct Read {
  TableError error;
  FrameRules rules;
  bool covers;
  Row row;
};

Read read_at(EntryBuilder& builder, std::uint64_t pc, std::int64_t budget_bytes = 1 << 20) {
  BufferSource buffer = builder.build(kTables);
  TableSource source = buffer.source(budget_bytes);
  Read read{};
  read.error = read_frame_rules(source, {builder.entry(), buffer.end(), kTables}, pc,
                                X86_64::kNumbers, read.rules, read.covers);
  if (read.error == TableError::kNone && read.covers) {
    read.row = compact(source, read.rules, X86_64::kNumbers);
  }
  return read;
}

// What every x86-64 compiler begins with: CFA = rsp + 8, return address at CFA - 8.
EntryBuilder x86_entry() {
  EntryBuilder builder;
  builder.initial = {0x0c, 7, 8, 0x90, 1};
  return builder;
}

TEST(Cfi, AFunctionsFirstInstructionHasTheInitialRow) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x41, 0x0e, 16, 0x86, 2};  // push %rbp
  const Read read = read_at(builder, builder.code_begin);
  ASSERT_EQ(read.error, TableError::kNone);
  EXPECT_EQ(read.rules.cfa.reg, 7u);
  EXPECT_EQ(read.rules.cfa.offset_bytes(), 8);
  EXPECT_EQ(read.rules.ra.kind, Kind::kAtCfa);
  EXPECT_EQ(read.rules.ra.offset_bytes(), -8);
  EXPECT_EQ(read.rules.fp.kind, Kind::kSame);
}

TEST(Cfi, ARowHoldsFromItsAddressOn) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x41, 0x0e, 16, 0x86, 2,  // +1: push %rbp
                          0x43, 0x0d, 6,            // +4: mov %rsp,%rbp
                          0x02, 0x50, 0x0c, 7, 8};  // +84: leave
  using Cfa = std::pair<std::uint64_t, std::int64_t>;
  const auto cfa = [&](std::uint64_t offset) {
    const Read read = read_at(builder, builder.code_begin + offset);
    return Cfa(read.rules.cfa.reg, read.rules.cfa.offset_bytes());
  };
  EXPECT_EQ(cfa(0), Cfa(7, 8));
  EXPECT_EQ(cfa(1), Cfa(7, 16));
  EXPECT_EQ(cfa(3), Cfa(7, 16));
  EXPECT_EQ(cfa(4), Cfa(6, 16));
  EXPECT_EQ(cfa(83), Cfa(6, 16));
  EXPECT_EQ(cfa(84), Cfa(7, 8));
}

TEST(Cfi, RememberedStateComesBackWhole) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x0e, 32, 0x86, 4, 0x0a,  // remember
                          0x41, 0x0e, 8, 0xc6,      // +1: popped, rbp restored
                          0x41, 0x0b};              // +2: as before
  EXPECT_EQ(read_at(builder, builder.code_begin + 1).rules.fp.kind, Kind::kSame);
  const Read back = read_at(builder, builder.code_begin + 2);
  EXPECT_EQ(back.rules.cfa.offset_bytes(), 32);
  EXPECT_EQ(back.rules.fp.kind, Kind::kAtCfa);
  EXPECT_EQ(back.rules.fp.offset_bytes(), -32);
}

TEST(Cfi, ARealignedStackHasItsCfaBehindAPointer) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x0f, 3, 0x76, 0x78, 0x06,   // CFA = *(rbp - 8)
                          0x10, 6, 2, 0x76, 0};        // rbp at *rbp
  const Read read = read_at(builder, builder.code_begin);
  EXPECT_EQ(read.row.kind, Row::Kind::kLoadedFromFp);
  EXPECT_EQ(read.row.cfa_slots, -1);
  EXPECT_EQ(read.row.fp_rule, Row::FpRule::kAtFp);
}

TEST(Cfi, AnUndefinedReturnAddressIsTheOutermostFrame) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x07, 16};
  EXPECT_EQ(read_at(builder, builder.code_begin).row.kind, Row::Kind::kOutermost);
}

TEST(Cfi, ASignalFrameIsKnownByItsAugmentation) {
  EntryBuilder builder = x86_entry();
  builder.augmentation = "zRS";
  EXPECT_EQ(read_at(builder, builder.code_begin).row.kind, Row::Kind::kSignalFrame);
}

TEST(Cfi, ARowThatDoesNotFitEightBytesIsGeneral) {
  const std::vector<std::vector<std::uint8_t>> shapes{
      {0x0c, 10, 0},                         // CFA = r10
      {0x0c, 7, 12},                         // no multiple of a slot
      {0x0c, 7, 0x80, 0x80, 0x80, 0x08},     // 16 MiB of frame
      {0x09, 16, 2},                         // return address in rcx
      {0x14, 6, 2},                          // rbp = CFA - 16
      {0x0f, 2, 0x77, 0x08},                 // an expression
  };
  for (const auto& instructions : shapes) {
    EntryBuilder builder = x86_entry();
    builder.instructions = instructions;
    const Read read = read_at(builder, builder.code_begin);
    EXPECT_EQ(read.error, TableError::kNone);
    EXPECT_EQ(read.row.kind, Row::Kind::kGeneral) << "first byte " << int{instructions[0]};
  }
}

TEST(Cfi, AnAddressOutsideOfTheEntryIsNotCovered) {
  EntryBuilder builder = x86_entry();
  EXPECT_TRUE(read_at(builder, builder.code_begin + builder.code_bytes - 1).covers);
  EXPECT_FALSE(read_at(builder, builder.code_begin + builder.code_bytes).covers);
  EXPECT_FALSE(read_at(builder, builder.code_begin - 1).covers);
}

TEST(Cfi, AnUnknownInstructionIsUnsupported) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x3f};
  EXPECT_EQ(read_at(builder, builder.code_begin).error, TableError::kUnsupported);
}

TEST(Cfi, AnUnknownAugmentationIsUnsupported) {
  EntryBuilder builder = x86_entry();
  builder.augmentation = "zX";
  EXPECT_EQ(read_at(builder, builder.code_begin).error, TableError::kUnsupported);
}

TEST(Cfi, ARestoreWithoutARememberIsCorrupt) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x0b};
  EXPECT_EQ(read_at(builder, builder.code_begin).error, TableError::kCorrupt);
}

TEST(Cfi, AnInstructionThatEndsBeyondTheEntryIsCorrupt) {
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x0e, 0x80};
  EXPECT_EQ(read_at(builder, builder.code_begin).error, TableError::kCorrupt);
}

TEST(Cfi, ReadingStopsWhenTheBudgetIsUsedUp) {
  EntryBuilder builder = x86_entry();
  builder.instructions.assign(4096, 0);
  EXPECT_EQ(read_at(builder, builder.code_begin, 1024).error, TableError::kBudget);
}

TEST(Cfi, AnyCorruptionEndsInAnAnswerWithinTheBudget) {
  std::minstd_rand random(7);
  EntryBuilder builder = x86_entry();
  builder.instructions = {0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x43, 0x0d, 6, 0x0f, 3, 0x76, 0x78, 0x06,
                          0x10, 6, 2, 0x76, 0, 0x0b, 0x02, 0x50, 0x0c, 7, 8};
  const BufferSource whole = builder.build(kTables);
  for (int round = 0; round < 20000; ++round) {
    BufferSource damaged = whole;
    for (int i = 0; i < 3; ++i) {
      damaged.bytes()[random() % damaged.bytes().size()] = static_cast<std::uint8_t>(random());
    }
    TableSource source = damaged.source(1 << 16);
    FrameRules rules;
    bool covers = false;
    const TableError error =
        read_frame_rules(source, {builder.entry(), damaged.end(), kTables},
                         builder.code_begin + random() % 256, X86_64::kNumbers, rules, covers);
    if (error == TableError::kNone && covers) {
      compact(source, rules, X86_64::kNumbers);
    }
    EXPECT_GE(source.budget_bytes, 0) << "an entry this small can't use up 64 KiB";
  }
}

}  // namespace
}  // namespace dial9::unwind
