// Prices, and JSON in and out; the one file of the service that includes the JSON library.
// SPDX-License-Identifier: Apache-2.0
#include "catalog.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace checkout {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kPrices{{
    {"tea", 450},
    {"coffee", 890},
    {"cup", 1200},
    {"kettle", 4900},
    {"honey", 730},
    {"lemon", 60},
    {"biscuit", 310},
    {"tray", 2150},
}};

std::expected<Item, std::string> parse_item(const Json& json) {
  if (!json.is_object()) return std::unexpected("an item must be an object");
  const auto sku = json.find("sku");
  const auto quantity = json.find("quantity");
  if (sku == json.end() || !sku->is_string()) return std::unexpected("an item needs a sku");
  if (quantity == json.end() || !quantity->is_number_integer()) {
    return std::unexpected("an item needs a quantity");
  }
  Item item;
  item.sku = sku->get<std::string>();
  item.quantity = quantity->get<std::int64_t>();
  const auto price = std::ranges::find(kPrices, item.sku, &decltype(kPrices)::value_type::first);
  if (price == kPrices.end()) return std::unexpected("no such sku: " + item.sku);
  if (item.quantity < 1 || item.quantity > kMaxQuantity) {
    return std::unexpected("quantity must be 1 to " + std::to_string(kMaxQuantity));
  }
  item.price_cents = price->second;
  return item;
}

}  // namespace

std::int64_t Order::total_cents() const {
  std::int64_t total = 0;
  for (const Item& item : items) total += item.quantity * item.price_cents;
  return total;
}

std::string Order::to_json() const {
  Json json{{"order", number}, {"cart", cart}, {"total_cents", total_cents()}};
  for (const Item& item : items) {
    json["items"].push_back(
        {{"sku", item.sku}, {"quantity", item.quantity}, {"price_cents", item.price_cents}});
  }
  return json.dump();
}

bool is_valid_cart(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

std::expected<Order, std::string> parse_order(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return std::unexpected("the body must be a JSON object");
  const auto cart = json.find("cart");
  const auto items = json.find("items");
  if (cart == json.end() || !cart->is_string() || !is_valid_cart(cart->get<std::string>())) {
    return std::unexpected("cart must be a valid id");
  }
  if (items == json.end() || !items->is_array() || items->empty() || items->size() > kMaxItems) {
    return std::unexpected("items must be a list of 1 to " + std::to_string(kMaxItems));
  }
  Order order;
  order.cart = cart->get<std::string>();
  for (const Json& json_item : *items) {
    auto item = parse_item(json_item);
    if (!item) return std::unexpected(item.error());
    order.items.push_back(std::move(*item));
  }
  return order;
}

bool is_json_object(std::string_view body) { return Json::parse(body, nullptr, false).is_object(); }

std::string error_json(std::string_view message) {
  const Json json{{"error", message}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace checkout
