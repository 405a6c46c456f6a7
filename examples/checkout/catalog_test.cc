// Reading and pricing of orders, with what a client may send instead.
// SPDX-License-Identifier: Apache-2.0
#include "catalog.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace checkout {
namespace {

TEST(Catalog, PricesAnOrderAndWritesItBack) {
  auto order = parse_order(
      R"({"cart":"a-1","items":[{"sku":"tea","quantity":2},{"sku":"lemon","quantity":3}]})");
  ASSERT_TRUE(order.has_value()) << order.error();
  order->number = 7;
  EXPECT_EQ(order->total_cents(), 2 * 450 + 3 * 60);
  const auto json = nlohmann::json::parse(order->to_json());
  EXPECT_EQ(json.at("order"), 7);
  EXPECT_EQ(json.at("cart"), "a-1");
  EXPECT_EQ(json.at("total_cents"), 1080);
  EXPECT_EQ(json.at("items").size(), 2u);
  EXPECT_EQ(json.at("items")[1].at("price_cents"), 60);
}

TEST(Catalog, RefusesWhatIsNoOrderWithAReason) {
  std::string too_many = R"({"cart":"a","items":[)";
  for (std::size_t i = 0; i <= kMaxItems; ++i) {
    too_many += std::string(i == 0 ? "" : ",") + R"({"sku":"tea","quantity":1})";
  }
  too_many += "]}";
  for (const std::string& wrong :
       {std::string(), std::string("[]"), std::string(R"({"cart":"a"})"),
        std::string(R"({"cart":"a","items":[]})"), std::string(R"({"cart":"a b","items":[1]})"),
        std::string(R"({"cart":"a","items":[1]})"),
        std::string(R"({"cart":"a","items":[{"sku":"gin","quantity":1}]})"),
        std::string(R"({"cart":"a","items":[{"sku":"tea","quantity":0}]})"),
        std::string(R"({"cart":"a","items":[{"sku":"tea","quantity":1001}]})"),
        std::string(R"({"cart":"a","items":[{"sku":"tea","quantity":1.5}]})"),
        std::string(R"({"cart":7,"items":[{"sku":"tea","quantity":1}]})"), too_many}) {
    const auto order = parse_order(wrong);
    ASSERT_FALSE(order.has_value()) << wrong;
    EXPECT_FALSE(order.error().empty());
  }
}

TEST(Catalog, BoundsCartIds) {
  EXPECT_TRUE(is_valid_cart("c-1_Z"));
  EXPECT_TRUE(is_valid_cart(std::string(64, 'x')));
  EXPECT_FALSE(is_valid_cart(std::string(65, 'x')));
  EXPECT_FALSE(is_valid_cart(""));
  EXPECT_FALSE(is_valid_cart("a/b"));
  EXPECT_FALSE(is_valid_cart("a%20"));
}

TEST(Catalog, TellsJsonObjectsFromTheRest) {
  EXPECT_TRUE(is_json_object(R"({"a":[1]})"));
  EXPECT_FALSE(is_json_object("[1]"));
  EXPECT_FALSE(is_json_object("{"));
}

TEST(Catalog, EscapesErrorsAlsoWhenTheyAreNoUtf8) {
  EXPECT_EQ(error_json("a \"b\""), "{\"error\":\"a \\\"b\\\"\"}\n");
  EXPECT_TRUE(nlohmann::json::accept(error_json("\xff\xfe")));
}

}  // namespace
}  // namespace checkout
