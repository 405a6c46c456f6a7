// At every instruction, one after the other: prologues, epilogues, linkage stubs before and after
// their first call, lazy binding in the dynamic linker, exceptions in flight.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "unwind/testing/async_reference.h"
#include "unwind/testing/single_step.h"
#include "unwind/testing/workloads.h"

namespace dial9::unwind {
namespace {

using testing::Comparison;
using testing::step_through;

class EveryInstruction : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::can_single_step()) {
      GTEST_SKIP() << "needs x86-64's trap flag, and signals at any instruction";
    }
  }
  static void expect_all_equal(const Comparison& comparison, std::uint32_t at_least) {
    EXPECT_GE(comparison.samples, at_least);
    EXPECT_EQ(comparison.equal, comparison.samples) << comparison.first_difference;
    EXPECT_EQ(comparison.whole, comparison.samples) << comparison.first_difference;
  }
};

void (*find_workload(std::span<const testing::Workload> all, std::string_view name))() {
  for (const testing::Workload& workload : all) {
    if (workload.name == name) {
      return workload.run;
    }
  }
  return nullptr;
}

TEST_F(EveryInstruction, OfCallsAndReturnsEqualsLibgcc) {
  for (const char* const name :
       {"prologues", "aligned_frames", "variable_frames", "virtual_calls"}) {
    SCOPED_TRACE(name);
    expect_all_equal(step_through(5000, find_workload(
        testing::with_frame_pointers::workloads(), name)), 500);
    expect_all_equal(step_through(5000, find_workload(
        testing::without_frame_pointers::workloads(), name)), 500);
  }
}

TEST_F(EveryInstruction, OfLibcAndLibstdcxxEqualsLibgcc) {
  for (const char* const name : {"malloc", "snprintf", "ostringstream", "qsort"}) {
    SCOPED_TRACE(name);
    const auto run = find_workload(testing::without_frame_pointers::workloads(), name);
    run();  // lazy binding and the like are the next test's
    expect_all_equal(step_through(10000, run), 10000);
  }
}

TEST_F(EveryInstruction, OfALinkageStubsFirstAndSecondCallEqualsLibgcc) {
  void* const plugin = dlopen(DIAL9_PLUGIN_A, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto use_libc = reinterpret_cast<int (*)(const char*)>(dlsym(plugin, "plugin_use_libc"));
  ASSERT_NE(use_libc, nullptr);
  int value = 0;
  const Comparison first = step_through(100000, [&] { value = use_libc("39"); });
  const Comparison second = step_through(100000, [&] { value += use_libc("39"); });
  dlclose(plugin);
  EXPECT_EQ(value, 2 * (39 + 2 + 3));
  expect_all_equal(first, 200);
  expect_all_equal(second, 200);
  EXPECT_GT(first.samples, second.samples + 1000) << "the first call should have bound symbols";
}

[[gnu::noinline]] void throw_two_frames_down(int depth) {
  if (depth == 0) {
    throw std::runtime_error("as intended");
  }
  throw_two_frames_down(depth - 1);
  asm volatile("");
}

TEST_F(EveryInstruction, OfAThrownExceptionEqualsLibgcc) {
  std::string caught;
  const Comparison comparison = step_through(200000, [&] {
    try {
      throw_two_frames_down(2);
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
  });
  EXPECT_EQ(caught, "as intended");
  EXPECT_GE(comparison.samples, 5000u);
  EXPECT_EQ(comparison.equal, comparison.samples) << comparison.first_difference;
}

}  // namespace
}  // namespace dial9::unwind
