// Every stack sampled at an arbitrary instruction equals libgcc's, in each workload, with and
// without frame pointers, by each way of finding modules and reading stacks.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "unwind/modules.h"
#include "unwind/testing/async_reference.h"
#include "unwind/testing/workloads.h"
#include "unwind/unwind.h"

namespace dial9::unwind {
namespace {

using testing::Comparison;
using testing::Workload;

struct Case {
  bool has_frame_pointers;
  Workload workload;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Workload& workload : testing::with_frame_pointers::workloads()) {
    cases.push_back({true, workload});
  }
  for (const Workload& workload : testing::without_frame_pointers::workloads()) {
    cases.push_back({false, workload});
  }
  return cases;
}

class AsyncStack : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!testing::signals_are_asynchronous()) {
      GTEST_SKIP() << "ThreadSanitizer delays signals to points of its own";
    }
#if defined(DIAL9_EMULATED)
    if (std::string_view(GetParam().workload.name) == "exceptions") {
      GTEST_SKIP() << "libgcc's walk faults where it interrupts libgcc's own unwinding";
    }
#endif
  }
  static void expect_all_equal(const Comparison& comparison) {
    EXPECT_EQ(comparison.equal, comparison.samples) << comparison.first_difference;
    EXPECT_GE(comparison.deepest, 4u);
    // libgcc jumps into a landing pad by one instruction at which its tables name the pad as the
    // return address. A pad that begins a function's cold part has no code before it, so that the
    // look-up behind the "call" fails: for libgcc's own walk, and equally for ours, which says so.
    if (std::string_view(GetParam().workload.name) != "exceptions") {
      EXPECT_EQ(comparison.whole, comparison.samples) << comparison.first_difference;
    }
  }
};

TEST_P(AsyncStack, EqualsLibgccAtEveryInstruction) {
  expect_all_equal(testing::sample_while(400, GetParam().workload.run));
}

TEST_P(AsyncStack, EqualsLibgccWhenTheKernelCopiesTheStack) {
  expect_all_equal(testing::sample_while(100, GetParam().workload.run, {.distrust_stack = true}));
}

TEST_P(AsyncStack, EqualsLibgccWithoutDlFindObject) {
  use_dl_find_object(false);
  const Comparison comparison = testing::sample_while(100, GetParam().workload.run);
  use_dl_find_object(true);
  expect_all_equal(comparison);
}

std::string name_of(const ::testing::TestParamInfo<Case>& instance) {
  return std::string(instance.param.workload.name) +
         (instance.param.has_frame_pointers ? "_with_fp" : "_without_fp");
}

INSTANTIATE_TEST_SUITE_P(Workloads, AsyncStack, ::testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace dial9::unwind
