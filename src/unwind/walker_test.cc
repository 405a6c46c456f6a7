// The walk over made-up stacks and tables, for both processors: the logic is the same code that
// runs natively.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/walker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "unwind/arch.h"

namespace dial9::unwind {
namespace {

struct FakeStack {
  std::map<std::uint64_t, std::uint64_t> words;
  void enter(std::uint64_t) {}
  bool load(std::uint64_t address, std::uint64_t& word) const {
    const auto found = words.find(address);
    word = found == words.end() ? 0 : found->second;
    return found != words.end();
  }
};

// A row holds from its address to the next one's.
struct FakeTables {
  std::map<std::uint64_t, Row> rows;
  std::map<std::uint64_t, FrameRules> general;
  std::vector<std::uint8_t> code;
  std::uint64_t code_at = 0;  // 0: wherever it is read
  TableSource no_source{[](void*, std::uint64_t, void*, std::size_t) { return std::size_t{0}; },
                        nullptr, 1 << 20};

  Row row(std::uint64_t pc) const {
    const auto after = rows.upper_bound(pc);
    return after == rows.begin() ? Row{} : std::prev(after)->second;
  }
  bool rules(std::uint64_t pc, unsigned, FrameRules& out) const {
    const auto after = general.upper_bound(pc);
    if (after == general.begin()) {
      return false;
    }
    out = std::prev(after)->second;
    return true;
  }
  TableSource& source() { return no_source; }
  StopReason failure() const { return StopReason::kNoTable; }
  std::size_t read_code(std::uint64_t pc, std::uint8_t* to, std::size_t bytes) const {
    const std::size_t from = code_at == 0 ? 0 : pc - code_at;
    if (from > code.size()) {
      return 0;
    }
    const std::size_t part = std::min(bytes, code.size() - from);
    std::copy_n(code.begin() + static_cast<std::ptrdiff_t>(from), part, to);
    return part;
  }
};

struct Walk {
  FakeStack stack;
  FakeTables tables;
  Registers registers;
  Options options;
  std::array<std::uint64_t, 16> frames{};

  template <class Arch>
  Result run(std::size_t room = 16) {
    return Walker<Arch, FakeStack, FakeTables>(registers, stack, tables,
                                               std::span(frames).first(room), options)
        .run();
  }
  std::vector<std::uint64_t> first(std::uint32_t count) const {
    return {frames.begin(), frames.begin() + count};
  }
};

Row from_sp(std::int16_t cfa, std::int16_t ra, std::int16_t fp = 0) {
  return {Row::Kind::kFromSp, fp != 0 ? Row::FpRule::kAtCfa : Row::FpRule::kSame, cfa, fp, ra};
}

constexpr std::uint64_t slots_down(std::uint64_t count) { return 0 - 8 * count; }

// Three frames at 0x5000: leaf 0x1010 <- middle 0x2020 <- outermost 0x3030.
Walk x86_walk() {
  Walk walk;
  walk.tables.rows = {{0x1000, from_sp(2, -1)},
                      {0x2000, from_sp(3, -1, -2)},
                      {0x3000, {.kind = Row::Kind::kOutermost}}};
  walk.stack.words = {{0x5008, 0x2020}, {0x5018, 0x9000}, {0x5020, 0x3030}};
  walk.registers.set(16, 0x1010);
  walk.registers.set(7, 0x5000);
  walk.registers.set(6, 0x7777);
  walk.tables.code = {0x90};
  return walk;
}

TEST(Walker, FollowsRowsToTheOutermostFrame) {
  Walk walk = x86_walk();
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x2020, 0x3030}));
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
  EXPECT_EQ(result.method, Method::kTables);
  EXPECT_FALSE(result.truncated());
}

TEST(Walker, SaysThatTheRoomWasTooSmall) {
  Walk walk = x86_walk();
  const Result result = walk.run<X86_64>(2);
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.stop, StopReason::kFramesFull);
}

TEST(Walker, NeedsNoRoomToSayThatItHasNone) {
  Walk walk = x86_walk();
  EXPECT_EQ(walk.run<X86_64>(0).stop, StopReason::kFramesFull);
}

TEST(Walker, LeavesOutTheInnermostFrames) {
  Walk walk = x86_walk();
  walk.options.skip = 2;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x3030}));
}

TEST(Walker, LooksUpAReturnAddressByItsCall) {
  Walk walk = x86_walk();
  walk.stack.words[0x5008] = 0x3000;  // the call is the last instruction of [0x2000, 0x3000)
  walk.stack.words[0x5020] = 0x3030;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x3000, 0x3030}));
}

TEST(Walker, AReturnAddressOfZeroIsTheEnd) {
  Walk walk = x86_walk();
  walk.stack.words[0x5020] = 0;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
}

TEST(Walker, AnImplausibleReturnAddressTruncates) {
  Walk walk = x86_walk();
  walk.stack.words[0x5020] = 17;
  EXPECT_EQ(walk.run<X86_64>().stop, StopReason::kImplausibleFrame);
}

TEST(Walker, AnUnreadableStackTruncates) {
  Walk walk = x86_walk();
  walk.stack.words.erase(0x5020);
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.stop, StopReason::kUnreadable);
}

TEST(Walker, AFrameThatDoesNotRiseTruncates) {
  Walk walk = x86_walk();
  walk.tables.rows[0x2000] = from_sp(0, -1);
  EXPECT_EQ(walk.run<X86_64>().stop, StopReason::kImplausibleFrame);
}

TEST(Walker, CodeWithoutTablesIsSteppedByFramePointerAndMarked) {
  Walk walk = x86_walk();
  walk.tables.rows.erase(0x1000);
  walk.registers.set(6, 0x5100);
  walk.stack.words[0x5100] = 0x9000;
  walk.stack.words[0x5108] = 0x3030;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x3030}));
  EXPECT_EQ(result.method, Method::kFramePointer);
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
}

TEST(Walker, TablesOnlyStopsAtCodeWithoutTables) {
  Walk walk = x86_walk();
  walk.tables.rows.erase(0x1000);
  walk.options.strategy = Strategy::kTables;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(result.count, 1u);
  EXPECT_EQ(result.method, Method::kNone);
  EXPECT_EQ(result.stop, StopReason::kNoTable);
}

TEST(Walker, AFramePointerOutOfPlaceIsNotFollowed) {
  for (const std::uint64_t fp : {0x4ff8ul, 0x5001ul, 0x5000ul + (1ul << 21), ~0ul, 8ul}) {
    Walk walk = x86_walk();
    walk.tables.rows.erase(0x1000);
    walk.registers.set(6, fp);
    const Result result = walk.run<X86_64>();
    EXPECT_EQ(result.count, 1u);
    EXPECT_EQ(result.stop, StopReason::kNoTable);
  }
}

TEST(Walker, ACircleOfFramePointersEnds) {
  Walk walk = x86_walk();
  walk.options.strategy = Strategy::kFramePointers;
  walk.registers.set(6, 0x5100);
  walk.stack.words[0x5100] = 0x5100;
  walk.stack.words[0x5108] = 0x2020;
  const Result result = walk.run<X86_64>();
  EXPECT_LE(result.count, 2u);
  EXPECT_TRUE(result.truncated());
}

TEST(Walker, ASignalFrameLeadsToTheInterruptedStackEvenIfThatIsLower) {
  Walk walk = x86_walk();
  walk.tables.rows[0x1000] = {.kind = Row::Kind::kSignalFrame};
  for (const SavedRegister& saved : X86_64::kSignalFrame) {
    walk.stack.words[0x5000 + saved.offset_bytes] = 0;
  }
  walk.stack.words[0x5000 + 168] = 0x2000;  // the handler interrupted the first instruction
  walk.stack.words[0x5000 + 160] = 0x1000;
  walk.stack.words[0x1008] = 0x9000;
  walk.stack.words[0x1010] = 0x3030;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x2000, 0x3030}));
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
}

TEST(Walker, SignalFramesThatLeadInACircleEnd) {
  Walk walk = x86_walk();
  walk.tables.rows[0x1000] = {.kind = Row::Kind::kSignalFrame};
  for (const SavedRegister& saved : X86_64::kSignalFrame) {
    walk.stack.words[0x5000 + saved.offset_bytes] = 0;
  }
  walk.stack.words[0x5000 + 168] = 0x1010;
  walk.stack.words[0x5000 + 160] = 0x5000;
  walk.options.skip = 1000000;  // room isn't what ends it
  EXPECT_EQ(walk.run<X86_64>().stop, StopReason::kImplausibleFrame);
}

TEST(Walker, AFrameThatNeedsAnotherRegisterIsReachedAgainWithIt) {
  Walk walk = x86_walk();
  walk.tables.rows[0x2000] = {.kind = Row::Kind::kGeneral};
  FrameRules leaf;  // CFA = rsp + 16, rbx saved at CFA - 16
  leaf.cfa = {7, 0, 16};
  leaf.ra = {RegisterRule::Kind::kAtCfa, 0, slots_down(1)};
  leaf.extra = {RegisterRule::Kind::kAtCfa, 0, slots_down(2)};
  FrameRules middle;  // CFA = rbx + 16
  middle.cfa = {3, 0, 16};
  middle.ra = {RegisterRule::Kind::kAtCfa, 0, slots_down(1)};
  walk.tables.general = {{0x1000, leaf}, {0x2000, middle}};
  walk.registers.set(3, 0x1111);
  walk.stack.words[0x5000] = 0x6000;
  walk.stack.words[0x6008] = 0x3030;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x2020, 0x3030}));
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
}

// AArch64: the leaf still has its return address in x30; the middle frame has saved x29 and x30.
Walk arm_walk() {
  Walk walk;
  walk.tables.rows = {{0x1000, from_sp(0, 0)},
                      {0x2000, {Row::Kind::kFromFp, Row::FpRule::kAtCfa, 4, -4, -3}},
                      {0x3000, {.kind = Row::Kind::kOutermost}}};
  walk.registers.set(Aarch64::kPc, 0x1010);
  walk.registers.set(31, 0x5000);
  walk.registers.set(30, 0x2020);
  walk.registers.set(29, 0x5000);
  walk.stack.words = {{0x5000, 0x5100}, {0x5008, 0x3030}};
  walk.tables.code = {0x1f, 0x20, 0x03, 0xd5};
  return walk;
}

TEST(Walker, OnAarch64ALeafHasItsReturnAddressInARegister) {
  Walk walk = arm_walk();
  const Result result = walk.run<Aarch64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x2020, 0x3030}));
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
}

TEST(Walker, OnAarch64ASignedReturnAddressIsCleaned) {
  Walk walk = arm_walk();
  walk.stack.words[0x5008] = 0x0012'0000'0000'3030;
  const Result result = walk.run<Aarch64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0x1010, 0x2020, 0x3030}));
}

TEST(Walker, OnAarch64OnlyAnInterruptedFrameMayBeALeaf) {
  Walk walk = arm_walk();
  walk.tables.rows[0x2000] = from_sp(2, 0);
  const Result result = walk.run<Aarch64>();
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.stop, StopReason::kUnsupportedRule);
}

// The start of a procedure linkage table: two nops, the entry that all lazy calls pass, a call's
// entry, one that authenticates. `pushed`: what lies on the stack before each instruction.
struct StubInstruction {
  std::uint32_t code;
  int pushed;  // -1: no stub
};
constexpr std::uint32_t kAdrp = 0xf000'06d0;
constexpr std::uint32_t kLoad = 0xf947'fe11;
constexpr std::uint32_t kAdd = 0x913f'e210;
constexpr std::uint32_t kBranch = 0xd61f'0220;
constexpr std::uint32_t kNop = 0xd503'201f;
constexpr std::uint32_t kBti = 0xd503'245f;
constexpr std::uint32_t kAuthenticate = 0xd503'219f;
constexpr StubInstruction kLinkageTable[] = {
    {kNop, -1}, {kNop, -1},       {kNop, -1},  {kNop, -1},  {kNop, -1},         {kNop, -1},
    {kBti, 0},  {0xa9bf'7bf0, 0}, {kAdrp, 16}, {kLoad, 16}, {kAdd, 16},         {kBranch, 16},
    {kNop, -1}, {kNop, -1},       {kAdrp, 0},  {kLoad, 0},  {kAdd, 0},          {kBranch, 0},
    {kBti, 0},  {kAdrp, 0},       {kLoad, 0},  {kAdd, 0},   {kAuthenticate, 0}, {kBranch, 0},
    {kNop, -1}, {kNop, -1},       {kAdrp, -1}, {kLoad, -1}, {kNop, -1},         {kNop, -1},
    {kNop, -1}, {kNop, -1},       {kNop, -1},  {kNop, -1}};

TEST(Walker, OnAarch64ALinkageStubShowsItsCallerAtEachInstruction) {
  Walk walk = arm_walk();
  walk.tables.rows = {{0x2000, from_sp(2, -1)}, {0x3000, {.kind = Row::Kind::kOutermost}}};
  walk.tables.code.clear();
  walk.tables.code_at = 0x1000;
  for (const StubInstruction& instruction : kLinkageTable) {
    for (int shift = 0; shift < 32; shift += 8) {
      walk.tables.code.push_back(static_cast<std::uint8_t>(instruction.code >> shift));
    }
  }
  walk.registers.set(29, 0);
  for (std::size_t i = 6; i + 7 < std::size(kLinkageTable); ++i) {
    const int pushed = kLinkageTable[i].pushed;
    walk.registers.set(Aarch64::kPc, 0x1000 + i * 4);
    walk.registers.set(31, 0x5000 - static_cast<std::uint64_t>(std::max(pushed, 0)));
    const Result result = walk.run<Aarch64>();
    EXPECT_EQ(result.stop, pushed < 0 ? StopReason::kNoTable : StopReason::kEndOfStack) << i;
    EXPECT_EQ(result.count, pushed < 0 ? 1u : 3u) << i;
  }
}

TEST(Walker, ACallOfNothingShowsItsCaller) {
  Walk walk = x86_walk();
  walk.registers.set(16, 0);
  walk.tables.code = {};
  walk.stack.words[0x5000] = 0x3030;
  const Result result = walk.run<X86_64>();
  EXPECT_EQ(walk.first(result.count), (std::vector<std::uint64_t>{0, 0x3030}));
  EXPECT_EQ(result.method, Method::kFramePointer);
}

}  // namespace
}  // namespace dial9::unwind
