// Rates that change while another process is read.
// SPDX-License-Identifier: Apache-2.0
#include "session/look_rates.h"

#include <gtest/gtest.h>

namespace dial9::internal {
namespace {

constexpr KeepOneIn one_in(double n) {
  KeepOneIn keep = kKeepAll;
  keep[0] = n;
  return keep;
}

// The list in the arena, as the recorder and its threads change it.
class RaisedRates {
 public:
  void raise(std::uint64_t at_ns, double keep_one_in) {
    raises_.list[raises_.count].at_ns = at_ns;
    raises_.list[raises_.count].keep_one_in = one_in(keep_one_in);
    ++raises_.count;
  }
  // They are in the segment, and the next ones follow the last of them.
  void tell() {
    raises_.since_ns = raises_.list[raises_.count - 1].at_ns;
    raises_.count = 0;
  }
  // The moments of the changes that a look has during which `meanwhile` happens.
  template <class Meanwhile>
  std::vector<std::uint64_t> seen_by_a_look(const Meanwhile& meanwhile) {
    std::vector<std::uint64_t> moments;
    for (const ShedRate& rate : rates_around([&] { return raises_; }, meanwhile)) {
      if (rate.shed_class == 0) moments.push_back(rate.at_ns);
    }
    return moments;
  }

 private:
  ShedRaises raises_;
};

using Moments = std::vector<std::uint64_t>;

TEST(RatesAroundALook, AreThoseOfBeforeWhereNothingChanges) {
  RaisedRates rates;
  EXPECT_EQ(rates.seen_by_a_look([] {}), Moments{});
  rates.raise(100, 4);
  rates.raise(200, 16);
  EXPECT_EQ(rates.seen_by_a_look([] {}), (Moments{100, 200}));
}

TEST(RatesAroundALook, HaveARateThatAThreadRaisesMeanwhile) {
  RaisedRates rates;
  EXPECT_EQ(rates.seen_by_a_look([&] { rates.raise(100, 4); }), Moments{100});
  EXPECT_EQ(rates.seen_by_a_look([&] { rates.raise(200, 16); }), (Moments{100, 200}));
}

TEST(RatesAroundALook, KeepARateThatTheRecorderWritesIntoItsSegmentMeanwhile) {
  RaisedRates rates;
  rates.raise(100, 4);
  EXPECT_EQ(rates.seen_by_a_look([&] { rates.tell(); }), Moments{100});
}

TEST(RatesAroundALook, HaveBothAndEachOnce) {
  RaisedRates rates;
  rates.raise(100, 4);
  rates.raise(200, 16);
  EXPECT_EQ(rates.seen_by_a_look([&] {
    rates.tell();
    rates.raise(300, 64);
    rates.raise(400, 256);
  }),
            (Moments{100, 200, 300, 400}));
}

}  // namespace
}  // namespace dial9::internal
