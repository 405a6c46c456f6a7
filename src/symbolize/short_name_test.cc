// The short forms of mangled names: of all that compilers make, in bounded work, and never of what
// isn't understood.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/short_name.h"

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "symbolize/demangle.h"

namespace dial9::symbolize {
namespace {

TEST(ShortName, LeavesTheArgumentsOfTemplatesAndFunctionsOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"_ZN5dial94pour3cupEi", "dial9::pour::cup(…)"},
      {"_ZN5dial94pour3cupEv", "dial9::pour::cup()"},
      {"_Z1fv", "f()"},
      {"_ZSt4sortIPiEvT_S1_", "std::sort<…>(…)"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<…>::push_back(…)"},
      {"_ZNSsC1EOSs", "std::string::basic_string(…)"},
      {"_ZNSt3mapIiN3app3RowESt4lessIiESaISt4pairIKiS1_EEED2Ev", "std::map<…>::~map()"},
      {"_ZNK3app3RowcvSsEv", "app::Row::operator …()"},
      {"_ZN3appltERKNS_3RowES2_", "app::operator<(…)"},
      {"_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work()"},
      {"_ZZN1a1xEvENKUliE_clEi", "a::x(…)::{lambda}::operator()(…)"},
      {"_ZN3app3getB5cxx11Ev", "app::get()"},
      {"_ZN3app4callIXadL_ZNS_3runEiEEEEvv", "app::call<…>(…)"},
      {"_ZN3app4gateILb1ELin3EEEvv", "app::gate<…>(…)"},
      {"_ZN3app3sumIJidPKcEEEDTplfp_Li1EET_", "app::sum<…>(…)"},
      {"_ZN3app5applyIZNS_3runEvEUlT_E_EEvS1_", "app::apply<…>(…)"},
      {"_ZThn16_N3app3Row3runEv", "thunk to app::Row::run()"}};
  for (const auto& [mangled, wanted] : cases) {
    int status = -1;
    std::free(abi::__cxa_demangle(mangled, nullptr, nullptr, &status));
    EXPECT_EQ(status, 0) << mangled << ": the test's own mistake";
    EXPECT_EQ(short_name(mangled).value_or("none"), wanted) << mangled;
  }
}

TEST(ShortName, OfThePartsOfACoroutineIsTheCoroutines) {
  EXPECT_EQ(short_name("_ZN8checkout6Faults10at_requestEPZNS0_10at_requestEvE39_"
                       "ZN8checkout6Faults10at_requestEv.Frame.actor")
                .value_or(""),
            "checkout::Faults::at_request(…) [coroutine]");
  EXPECT_EQ(short_name("_ZN1a1fEi.destroy.cold").value_or(""),
            "a::f(…) [coroutine's end] [clone .cold]");
  EXPECT_EQ(short_name("_ZN1a1fEv.constprop.0").value_or(""), "a::f() [clone .constprop]");
}

TEST(ShortName, IsNoneWhereItIsNotUnderstood) {
  for (const std::string& name :
       {std::string(), std::string("main"), std::string("_Z"), std::string("_ZN3foo"),
        std::string("_ZN99999999999999999999aE"), std::string("_ZN1aI1bE"), std::string("_ZNEv"),
        "_ZN1aI" + std::string(1'000, 'P') + "iEEvv", std::string("_ZN1aILiE"),
        "_Z1fI" + std::string(20'000, 'i') + "Evv"}) {
    EXPECT_FALSE(short_name(name).has_value()) << name.substr(0, 40);
  }
}

TEST(ShortName, OfANameWithManyConstructorsIsNotManyTimesAsLong) {
  std::string bomb = "_ZN4000" + std::string(4'000, 'a');
  EXPECT_EQ(short_name(bomb + "C1Ev"),
            std::string(4'000, 'a') + "::" + std::string(4'000, 'a') + "()");
  for (int i = 0; i < 2'000; ++i) bomb += "C1";
  EXPECT_LT(short_name(bomb + "Ev").value_or("").size(), 2 * bomb.size());
}

// Of every prefix of a name that has all kinds of parts: an answer or none, and no crash.
TEST(ShortName, EndsWhereTheNameDoes) {
  const std::string name =
      "_ZZN3app5applyIXsrSt7is_sameIT_iE5valueEDTcl1gfp_EEJLin3EL_ZNS_3runEvEEEEDaOT0_ENKUlS1_E_"
      "clIFvRKNS_3RowEzEEEDTdtfp_4sizeES1_.actor.cold";
  for (std::size_t length = 0; length <= name.size(); ++length) {
    const auto found = short_name(std::string_view(name).substr(0, length));
    EXPECT_LT(found.value_or("").size(), 2 * name.size());
  }
}

TEST(ReadableName, ShortensWhatWouldUnfoldWithoutEnd) {
  std::string bomb = "_ZN3app1fE1AIiiE";
  for (const char last : std::string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    bomb += std::string("S1_IS") + last + "_S" + last + "_E";
  }
  EXPECT_EQ(demangle(bomb), bomb);
  EXPECT_EQ(readable_name(bomb), "app::f(…)");
  EXPECT_EQ(readable_name("_ZN5dial94pour3cupEi"), "dial9::pour::cup(int)");
  EXPECT_EQ(readable_name("_ZN5dial94pour3cupEi", 1), "dial9::pour::cup(…)");
  EXPECT_EQ(readable_name("main"), "main");
  EXPECT_EQ(readable_name("_Zzz"), "_Zzz");
}

TEST(ReadableName, ShortensWhatNobodyReads) {
  std::string many = "_Z1fI";
  for (int i = 0; i < 120; ++i) many += "St6vectorIiSaIiEE";
  many += "Evv";
  EXPECT_EQ(readable_name(many), "f<…>(…)");
}

}  // namespace
}  // namespace dial9::symbolize
