// Who is connected: since when each waits for a request, and whose place a newcomer gets. Strongest
// property: takes no memory, since a connection is most likely to be ended where there is none.
// Spec: docs/spec/http_api.md.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dial9::server {

// An open connection, linked to the others.
struct Place {
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  std::array<unsigned char, 16> client{};  // its address
  std::uint64_t deadline_ns = kNever;      // it must be further by then
  std::uint64_t waits_since_ns = kNever;   // for a request; kNever: one is being answered
  std::size_t of_client = 0;               // connections of that address
  Place* next = nullptr;
  Place* previous = nullptr;
};

// One thread.
class Places {
 public:
  // Of a place that is in it. `client` doesn't change until it is removed.
  void add(Place& place) noexcept;
  void remove(Place& place) noexcept;  // nothing, where it isn't in it
  std::size_t size() const noexcept { return size_; }

  // One whose time is over; null: none.
  Place* overdue(std::uint64_t now_ns) noexcept;
  // Whose place the newcomer, which is in it, gets (HttpOptions::max_connections); null: nobody's.
  Place* victim_of(const Place& newcomer) noexcept;

 private:
  Place* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dial9::server
