// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_symbols.h"

#include <gtest/gtest.h>

namespace dial9::symbolize {
namespace {

constexpr std::string_view kList =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000000 T startup_64\n"
    "ffffffff81000100 T __x64_sys_read\n"
    "ffffffff81000100 T ksys_read\n"
    "ffffffff81000200 t vfs_read\n"
    "ffffffff81000300 r a_table_within_the_text\n"
    "ffffffff81000400 W a_weak_one\n"
    "ffffffff81000500 T _etext\n"
    "ffffffff82000000 D jiffies\n"
    "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
    "ffffffffc0000100 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

TEST(KernelSymbols, NamesTheFunctionThatHoldsTheAddress) {
  const auto symbols = KernelSymbols::parse(kList);
  ASSERT_TRUE(symbols.has_value());
  EXPECT_EQ(symbols->name(0xffffffff81000000), "startup_64");
  EXPECT_EQ(symbols->name(0xffffffff810001ff), "ksys_read") << "the name that people call";
  EXPECT_EQ(symbols->name(0xffffffff81000200), "vfs_read");
  EXPECT_EQ(symbols->name(0xffffffff810004ff), "a_weak_one");
}

TEST(KernelSymbols, HaveNoNameForWhatIsNoFunctionOfTheKernelItself) {
  const auto symbols = KernelSymbols::parse(kList);
  ASSERT_TRUE(symbols.has_value());
  EXPECT_EQ(symbols->name(0xffffffff80ffffff), "") << "before it";
  EXPECT_EQ(symbols->name(0xffffffff81000350), "") << "a table";
  EXPECT_EQ(symbols->name(0xffffffff81000500), "") << "behind it";
  EXPECT_EQ(symbols->name(0xffffffff82000000), "") << "data";
  EXPECT_EQ(symbols->name(0xffffffffc0000010), "") << "a module, another one when it was recorded";
  EXPECT_EQ(symbols->name(~std::uint64_t{0}), "");
}

TEST(KernelSymbols, SayThatTheAddressesAreHidden) {
  const auto symbols = KernelSymbols::parse(
      "0000000000000000 T _stext\n0000000000000000 T vfs_read\n0000000000000000 T _etext\n");
  ASSERT_FALSE(symbols.has_value());
  EXPECT_EQ(symbols.error().code, ErrorCode::kPermission);
}

TEST(KernelSymbols, RefuseAListWithoutAnEndOrWithoutSense) {
  for (const std::string_view text :
       {"", "\n\n", "ffffffff81000000 T _stext\n", "zz T a\nffff\nffffffff81 T\n",
        "ffffffff81000500 T _stext\nffffffff81000000 T _etext\n"}) {
    const auto symbols = KernelSymbols::parse(text);
    ASSERT_FALSE(symbols.has_value()) << text;
    EXPECT_EQ(symbols.error().code, ErrorCode::kUnsupported);
  }
  EXPECT_FALSE(KernelSymbols::read("/nowhere/kallsyms").has_value());
}

TEST(KernelSymbols, OfThisKernelHaveItsSystemCalls) {
  const auto symbols = KernelSymbols::read();
  if (!symbols) GTEST_SKIP() << symbols.error().message;
  EXPECT_GT(symbols->size(), 1'000U);
  EXPECT_FALSE(own_boot_id().empty());
}

}  // namespace
}  // namespace dial9::symbolize
