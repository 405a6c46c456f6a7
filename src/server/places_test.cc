// Whose place a newcomer gets, without any memory taken for it.
// SPDX-License-Identifier: Apache-2.0
#include "server/places.h"

#include <gtest/gtest.h>

#include <iterator>

#include "server/testing/allocations.h"

namespace dial9::server {
namespace {

Place of_client(unsigned char last, std::uint64_t waits_since_ns = Place::kNever) {
  Place place;
  place.client.back() = last;
  place.waits_since_ns = waits_since_ns;
  return place;
}

TEST(Places, OfTheAddressWithTheMostTheOneThatWaitsLongestGoes) {
  Places places;
  Place lone = of_client(1, 1);
  Place older = of_client(2, 10);
  Place newer = of_client(2, 20);
  Place newcomer = of_client(3, 30);
  for (Place* const place : {&lone, &newer, &older, &newcomer}) places.add(*place);
  EXPECT_EQ(places.size(), 4U);
  EXPECT_EQ(places.victim_of(newcomer), &older);
  places.remove(older);
  EXPECT_EQ(places.victim_of(newcomer), &lone) << "one each: who waits the longest";
}

TEST(Places, NobodyGoesForAnAddressThatHasMoreOrWhileAllAreAnswered) {
  Places places;
  Place lone = of_client(1, 1);
  Place answered = of_client(2);
  Place newcomer = of_client(2, 30);
  for (Place* const place : {&lone, &answered, &newcomer}) places.add(*place);
  EXPECT_EQ(places.victim_of(newcomer), nullptr);
  places.remove(answered);
  EXPECT_EQ(places.victim_of(newcomer), &lone);
}

TEST(Places, OneThatIsRemovedTwiceOrWasNeverThereChangesNothing) {
  Places places;
  Place first = of_client(1, 1);
  Place second = of_client(1, 2);
  Place stranger = of_client(1, 3);
  places.add(first);
  places.add(second);
  places.remove(first);
  places.remove(first);
  places.remove(stranger);
  EXPECT_EQ(places.size(), 1U);
  EXPECT_EQ(second.of_client, 1U);
  places.remove(second);
  EXPECT_EQ(places.size(), 0U);
  EXPECT_EQ(places.overdue(Place::kNever - 1), nullptr);
}

TEST(Places, EachWhoseTimeIsOverIsFoundOnce) {
  Places places;
  Place early = of_client(1);
  Place late = of_client(2);
  early.deadline_ns = 10;
  late.deadline_ns = 20;
  places.add(early);
  places.add(late);
  EXPECT_EQ(places.overdue(9), nullptr);
  EXPECT_EQ(places.overdue(10), &early);
  places.remove(early);
  EXPECT_EQ(places.overdue(19), nullptr);
  EXPECT_EQ(places.overdue(20), &late);
}

TEST(Places, NoneOfItTakesMemory) {
  if (!testing::are_allocations_counted()) GTEST_SKIP() << "a sanitizer has its own operator new";
  Places places;
  Place all[300];
  const std::uint64_t before = testing::allocations();
  for (std::size_t i = 0; i < std::size(all); ++i) {
    all[i] = of_client(static_cast<unsigned char>(i % 7), i);
    places.add(all[i]);
  }
  Place* const victim = places.victim_of(all[299]);
  for (Place* at = places.overdue(Place::kNever); at != nullptr;) {
    places.remove(*at);
    at = places.overdue(Place::kNever);
  }
  EXPECT_EQ(testing::allocations(), before);
  ASSERT_NE(victim, nullptr);
  EXPECT_EQ(places.size(), 0U);
}

}  // namespace
}  // namespace dial9::server
