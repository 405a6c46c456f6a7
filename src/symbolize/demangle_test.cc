// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <gtest/gtest.h>

namespace dial9::symbolize {
namespace {

TEST(Demangle, ShowsFunctionsAsTheyAreWritten) {
  EXPECT_EQ(demangle("_ZN5dial94pour3cupEi"), "dial9::pour::cup(int)");
  EXPECT_EQ(demangle("_ZSt4sortIPiEvT_S1_"), "void std::sort<int*>(int*, int*)");
  EXPECT_EQ(demangle("main"), "main");
}

// What g++ 12 and clang 19 make of coroutines: members, templates, lambdas.
TEST(Demangle, ShowsACoroutinesBodyUnderTheCoroutinesName) {
  EXPECT_EQ(demangle("_ZN8checkout6Faults10at_requestEPZNS0_10at_requestEvE39_"
                     "ZN8checkout6Faults10at_requestEv.Frame.actor"),
            "checkout::Faults::at_request() [coroutine]");
  EXPECT_EQ(demangle("_ZN8checkout6Faults10at_requestEPZNS0_10at_requestEvE39_"
                     "ZN8checkout6Faults10at_requestEv.Frame.actor.cold"),
            "checkout::Faults::at_request() [coroutine]");
  EXPECT_EQ(demangle("_ZN8checkout6Faults10at_requestEPZNS0_10at_requestEvE39_"
                     "ZN8checkout6Faults10at_requestEv.Frame.destroy"),
            "checkout::Faults::at_request() [coroutine's end]");
  EXPECT_EQ(demangle("_ZN1a12_GLOBAL__N_11b1fEPZNS1_1fEiE31_ZN1a12_GLOBAL__N_11b1fEi.Frame.actor"),
            "a::(anonymous namespace)::b::f(int) [coroutine]");
  EXPECT_EQ(demangle("_ZN1a1gEPZNS_1gIiEE4taskT_PS2_E28_ZN1a1gIiEE4taskT_PS2_.Frame.actor"),
            "a::g<int>(int, int*) [coroutine]");
  EXPECT_EQ(
      demangle("_ZZN1a1xEvENUliE_clEPZZNS_1xEvENKS0_clEiE28_ZZN1a1xEvENKUliE_clEi.Frame.actor"),
      "a::x()::{lambda(int)#1}::operator()(int) const [coroutine]");
  EXPECT_EQ(demangle("_ZN1a12_GLOBAL__N_11b1fEi.resume"),
            "a::(anonymous namespace)::b::f(int) [coroutine]");
  EXPECT_EQ(demangle("_ZN1a12_GLOBAL__N_11b1fEi.cleanup"),
            "a::(anonymous namespace)::b::f(int) [coroutine's end]");
}

TEST(Demangle, LeavesWhatOnlyLooksLikeACoroutine) {
  EXPECT_EQ(demangle("_Z1fi.cold"), "f(int) [clone .cold]");
  EXPECT_EQ(demangle("_Z1fi.actor"), "f(int) [clone .actor]");
}

TEST(Demangle, LeavesWhatItCannotUnfoldAsItIs) {
  for (const std::string& name : {std::string("_Z"), std::string("_ZN3foo"), std::string(),
                                  "_Z" + std::string(10'000, 'P')}) {
    EXPECT_EQ(demangle(name), name);
  }
}

// f(A<int>, A<A, A>, A<A<A, A>, A<A, A>>, ...): each parameter is twice the one before.
std::string bomb(int levels) {
  std::string name = "_Z1f1AIiiE";
  for (int level = 0; level < levels; ++level) {
    const std::string last =
        level == 0 ? "S0_"
                   : "S" +
                         std::string(1, level < 10 ? static_cast<char>('0' + level)
                                                   : static_cast<char>('A' + level - 10)) +
                         "_";
    name += "S_I" + last + last + "E";
  }
  return name;
}

TEST(Demangle, UnfoldsNamesThatRepeatThemselvesALittle) {
  EXPECT_EQ(demangle(bomb(1)), "f(A<int, int>, A<A<int, int>, A<int, int> >)");
}

TEST(Demangle, DoesNotUnfoldANameThatWouldNeverEnd) {
  EXPECT_EQ(demangle(bomb(33)), bomb(33));
  EXPECT_EQ(demangle(bomb(30)), bomb(30));
}

TEST(Demangle, UnfoldsNoFurtherThanItsCallerHasRoom) {
  EXPECT_GT(demangle(bomb(8)).size(), bomb(8).size());
  EXPECT_EQ(demangle(bomb(8), 65'536), bomb(8));
  EXPECT_EQ(demangle("_ZN5dial94pour3cupEi", 65'536), "dial9::pour::cup(int)");
}

}  // namespace
}  // namespace dial9::symbolize
