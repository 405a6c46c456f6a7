// The goods and their prices, and the reading of an order from JSON: everything of a checkout that
// needs no I/O.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace checkout {

struct Item {
  std::string sku;
  std::int64_t quantity = 0;
  std::int64_t price_cents = 0;  // of one, from the catalog
};

struct Order {
  std::int64_t number = 0;  // 0: not yet given
  std::string cart;
  std::vector<Item> items;

  std::int64_t total_cents() const;
  std::string to_json() const;
};

inline constexpr std::size_t kMaxItems = 32;
inline constexpr std::int64_t kMaxQuantity = 1000;

// A cart's id: 1 to 64 of letters, digits, '-' and '_'.
bool is_valid_cart(std::string_view id);

// Reads and prices the body of POST /checkout. The error is one line for the client.
std::expected<Order, std::string> parse_order(std::string_view body);

// True if `body` is one JSON object.
bool is_json_object(std::string_view body);

// {"error":message} with the message escaped.
std::string error_json(std::string_view message);

}  // namespace checkout
