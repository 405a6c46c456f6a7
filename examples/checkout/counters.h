// The service's plain counters, as GET /metrics shows them. Relaxed atomics: each is right alone,
// and no order between two of them is promised.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace checkout {

struct Counters {
  using Counter = std::atomic<std::uint64_t>;

  Counter connections_accepted{0};
  Counter connections_open{0};
  Counter connections_refused{0};      // over the limit
  Counter request_timeouts{0};         // a request that didn't arrive in time
  std::array<Counter, 6> responses{};  // by status class: [2] = 2xx
  Counter response_bytes{0};
  Counter orders{0};
  Counter kv_calls{0};
  Counter kv_failures{0};
  Counter audit_lines{0};
  Counter audit_refused{0};  // its queue was full

  static void add(Counter& counter, std::uint64_t by = 1) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
  void count_response(int status, std::uint64_t body_bytes);

  // In the text form that metric scrapers read: one "name value" a line.
  std::string render() const;
};

}  // namespace checkout
