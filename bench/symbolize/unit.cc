// A unit as services have them: templates of the standard library, much of it inlined. What it does
// is of no interest, only its code and its debug information.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shop {

template <int N>
struct Order {
  std::string name;
  std::map<std::string, std::vector<int>> lines;
  std::unordered_map<int, std::shared_ptr<Order>> parts;
  std::variant<int, std::string, double> price;
};

template <int N>
std::string print(const Order<N>& order) {
  std::ostringstream out;
  out << order.name << N;
  for (const auto& [name, counts] : order.lines) {
    out << name;
    for (const int count : counts) out << count;
  }
  for (const auto& [id, part] : order.parts) out << id << print(*part);
  std::visit([&](const auto& price) { out << price; }, order.price);
  return out.str();
}

template <int N>
std::size_t handle(std::vector<Order<N>>& orders, const std::string& pattern) {
  const std::regex wanted(pattern);
  std::sort(orders.begin(), orders.end(),
            [](const Order<N>& a, const Order<N>& b) { return a.name < b.name; });
  std::function<bool(const Order<N>&)> is_wanted = [&](const Order<N>& order) {
    return std::regex_search(print(order), wanted);
  };
  const auto end = std::remove_if(orders.begin(), orders.end(), std::not_fn(is_wanted));
  orders.erase(end, orders.end());
  return orders.size();
}

template <int... N>
std::size_t handle_all(const std::string& pattern, std::integer_sequence<int, N...>) {
  return (handle<N>(*std::make_unique<std::vector<Order<N>>>(3), pattern) + ...);
}

}  // namespace shop

std::size_t run(const std::string& pattern) {
  return shop::handle_all(pattern, std::make_integer_sequence<int, 12>());
}
