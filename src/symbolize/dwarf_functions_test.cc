// Functions, inlined ones and namespaces of a unit, of entries that are written byte by byte.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_functions.h"

#include <gtest/gtest.h>

#include "symbolize/dwarf_constants.h"
#include "symbolize/testing/dwarf_writer.h"

namespace dial9::symbolize {
namespace {

using testing::DwarfWriter;

constexpr DwarfFormat kFormat{5, 8, 4};
constexpr std::uint64_t kStructure = 0x13;
constexpr std::uint64_t kName = 0x03;

// The kinds of entries that the tests have, by their codes.
enum Code : std::uint8_t {
  kEnd,
  kUnit,
  kFunction,      // with children
  kInlined,       // without
  kOuterInlined,  // with
  kType,          // with children, and where the next entry is
  kSpace,
  kDeclaration,
  kBlock,
  kOpenType,  // with children, and nothing that says where they end
  kSplit,     // a function whose code isn't told by its entry
};

std::vector<std::uint8_t> abbreviations() {
  DwarfWriter out;
  const auto add = [&](std::uint64_t code, std::uint64_t tag, bool has_children,
                       std::initializer_list<std::uint64_t> attributes) {
    out.ulebs({code, tag}).u8(has_children ? 1 : 0).ulebs(attributes).ulebs({0, 0});
  };
  const std::initializer_list<std::uint64_t> code = {dwarf::kAtLowPc, dwarf::kFormAddr,
                                                     dwarf::kAtHighPc, dwarf::kFormData4};
  add(kUnit, dwarf::kTagCompileUnit, true, {kName, dwarf::kFormString});
  add(kFunction, dwarf::kTagSubprogram, true, code);
  add(kInlined, dwarf::kTagInlinedSubroutine, false, code);
  add(kOuterInlined, dwarf::kTagInlinedSubroutine, true, code);
  add(kType, kStructure, true, {kName, dwarf::kFormString, dwarf::kAtSibling, dwarf::kFormRef4});
  add(kSpace, dwarf::kTagNamespace, true, {kName, dwarf::kFormString});
  add(kDeclaration, dwarf::kTagSubprogram, false, {kName, dwarf::kFormString});
  add(kBlock, dwarf::kTagLexicalBlock, true, {});
  add(kOpenType, kStructure, true, {kName, dwarf::kFormExprloc});
  add(kSplit, dwarf::kTagSubprogram, false, {dwarf::kAtRanges, dwarf::kFormSecOffset});
  out.uleb(0);
  return out.bytes();
}

class UnitFunctionsTest : public ::testing::Test {
 protected:
  UnitFunctionsTest() { out_.u8(kUnit).text("unit.cc"); }

  // An entry with code; where it begins.
  std::size_t add(Code code, std::uint64_t begin, std::uint64_t size) {
    const std::size_t at = out_.size();
    out_.u8(code).number(begin, 8).number(size, 4);
    return at;
  }
  std::size_t add_named(Code code) {
    const std::size_t at = out_.size();
    out_.u8(code).text("name");
    return at;
  }
  void end() { out_.u8(kEnd); }

  UnitFunctions read() {
    return UnitFunctions(out_.bytes(), 0, kFormat,
                         DwarfAbbreviations::read(abbreviations_, kFormat),
                         [this](const DwarfEntry& entry, std::vector<AddressRange>& to) {
                           if (entry.has_range) to.push_back(entry.range);
                           if (entry.has_others)
                             to.insert(to.end(), others_.begin(), others_.end());
                         });
  }
  // Where the entries of an address begin, innermost first.
  static std::vector<std::size_t> chain(UnitFunctions& functions, std::uint64_t address) {
    std::vector<std::size_t> found;
    const std::uint32_t function = functions.at(address);
    if (function == UnitFunctions::kNone) return found;
    for (const auto& scope : functions.chain(function, address)) found.push_back(scope.at);
    return found;
  }

  const std::vector<std::uint8_t> abbreviations_ = abbreviations();
  DwarfWriter out_;
  std::vector<AddressRange> others_;
};

using Chain = std::vector<std::size_t>;

TEST_F(UnitFunctionsTest, FindsTheInnermostInlinedFunctionAndAllAroundIt) {
  const std::size_t f = add(kFunction, 0x100, 0x40);
  const std::size_t outer = add(kOuterInlined, 0x110, 0x20);
  out_.u8(kBlock);
  const std::size_t inner = add(kInlined, 0x118, 8);
  end();  // the block
  end();  // outer
  const std::size_t second = add(kInlined, 0x130, 4);
  end();  // f
  const std::size_t g = add(kFunction, 0x140, 0x10);
  end();
  end();
  UnitFunctions functions = read();
  EXPECT_EQ(chain(functions, 0x0ff), Chain());
  EXPECT_EQ(chain(functions, 0x100), Chain({f}));
  EXPECT_EQ(chain(functions, 0x110), Chain({outer, f}));
  EXPECT_EQ(chain(functions, 0x118), Chain({inner, outer, f}));
  EXPECT_EQ(chain(functions, 0x11f), Chain({inner, outer, f}));
  EXPECT_EQ(chain(functions, 0x120), Chain({outer, f}));
  EXPECT_EQ(chain(functions, 0x130), Chain({second, f}));
  EXPECT_EQ(chain(functions, 0x140), Chain({g}));
  EXPECT_EQ(chain(functions, 0x150), Chain());
}

// A lambda's body lies in the function that makes it, be this one only inlined elsewhere.
TEST_F(UnitFunctionsTest, FindsFunctionsThatLieInOthers) {
  const std::size_t f = add(kFunction, 0x100, 0x40);
  out_.u8(kBlock);
  const std::size_t lambda = add(kFunction, 0x200, 0x10);
  const std::size_t in_lambda = add(kInlined, 0x204, 4);
  end();  // lambda
  end();  // the block
  const std::size_t in_f = add(kInlined, 0x104, 4);
  end();                 // f
  add(kFunction, 0, 0);  // its code is nowhere
  const std::size_t other = add(kFunction, 0x300, 0x10);
  end();
  end();
  end();
  others_ = {};
  UnitFunctions functions(out_.bytes(), 0, kFormat,
                          DwarfAbbreviations::read(abbreviations_, kFormat),
                          [](const DwarfEntry& entry, std::vector<AddressRange>& to) {
                            if (entry.range.begin < entry.range.end) to.push_back(entry.range);
                          });
  EXPECT_EQ(chain(functions, 0x204), Chain({in_lambda, lambda}));
  EXPECT_EQ(chain(functions, 0x104), Chain({in_f, f}));
  EXPECT_EQ(chain(functions, 0x200), Chain({lambda}));
  EXPECT_EQ(chain(functions, 0x300), Chain({other}));
}

TEST_F(UnitFunctionsTest, PassesTypesWithAllThatIsInThem) {
  out_.u8(kType).text("T");
  const std::size_t after = out_.size() + 4 + 30;
  out_.number(after, 4);
  while (out_.size() < after) out_.u8(0xff);  // isn't read
  out_.u8(kOpenType).uleb(3).u8(1).u8(2).u8(3);
  add_named(kDeclaration);
  end();
  const std::size_t f = add(kFunction, 0x100, 0x10);
  end();
  end();
  UnitFunctions functions = read();
  EXPECT_EQ(chain(functions, 0x100), Chain({f}));
}

TEST_F(UnitFunctionsTest, AsksForCodeThatTheEntryDoesNotTell) {
  const std::size_t f = out_.size();
  out_.u8(kSplit).number(77, 4);
  end();
  others_ = {{0x100, 0x110}, {0x500, 0x501}};
  UnitFunctions functions = read();
  EXPECT_EQ(chain(functions, 0x10f), Chain({f}));
  EXPECT_EQ(chain(functions, 0x500), Chain({f}));
  EXPECT_EQ(chain(functions, 0x110), Chain());
}

TEST_F(UnitFunctionsTest, KnowsWhichNamespaceAnEntryLiesIn) {
  const std::size_t before = add_named(kDeclaration);
  add_named(kSpace);
  const std::size_t in_a = add_named(kDeclaration);
  add_named(kSpace);
  const std::size_t in_b = add_named(kDeclaration);
  end();
  const std::size_t in_a_again = add_named(kDeclaration);
  end();
  out_.u8(kType).text("T").number(out_.size() + 10, 4);
  const std::size_t in_type = out_.size();
  out_.number(0, 2);
  const std::size_t behind = add_named(kDeclaration);
  end();
  const UnitFunctions functions = read();
  ASSERT_EQ(functions.spaces().size(), 2U);
  EXPECT_EQ(functions.space_at(before), UnitFunctions::kNone);
  EXPECT_EQ(functions.space_at(in_a), 0U);
  EXPECT_EQ(functions.space_at(in_b), 1U);
  EXPECT_EQ(functions.spaces()[1].parent, 0U);
  EXPECT_EQ(functions.space_at(in_a_again), 0U);
  EXPECT_EQ(functions.space_at(in_type), UnitFunctions::kNone) << "it ended before the type";
  EXPECT_EQ(functions.space_at(behind), UnitFunctions::kNone);
}

TEST_F(UnitFunctionsTest, HasWhatWasBeforeAPlaceThatMakesNoSense) {
  const std::size_t f = add(kFunction, 0x100, 0x10);
  end();
  out_.u8(99);  // there is no such kind
  add(kFunction, 0x200, 0x10);
  UnitFunctions functions = read();
  EXPECT_EQ(chain(functions, 0x100), Chain({f}));
  EXPECT_EQ(chain(functions, 0x200), Chain());
}

TEST_F(UnitFunctionsTest, ReadsNoDeeperThanItsBound) {
  for (int i = 0; i < 10'000; ++i) out_.u8(kBlock);
  add(kFunction, 0x100, 0x10);
  UnitFunctions functions = read();
  EXPECT_EQ(functions.at(0x100), UnitFunctions::kNone);
}

TEST_F(UnitFunctionsTest, CutAnywhereHasNothingWrong) {
  add(kFunction, 0x100, 0x40);
  add(kOuterInlined, 0x110, 0x20);
  end();
  end();
  const std::vector<std::uint8_t> whole = out_.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::uint8_t> cut(whole.begin(),
                                        whole.begin() + static_cast<std::ptrdiff_t>(size));
    UnitFunctions functions(cut, 0, kFormat, DwarfAbbreviations::read(abbreviations_, kFormat),
                            [](const DwarfEntry& entry, std::vector<AddressRange>& to) {
                              if (entry.has_range) to.push_back(entry.range);
                            });
    const std::uint32_t function = functions.at(0x110);
    if (function != UnitFunctions::kNone) {
      EXPECT_LE(functions.chain(function, 0x110).size(), 2U);
    }
  }
}

}  // namespace
}  // namespace dial9::symbolize
