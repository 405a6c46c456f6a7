// Text form of the service's counters.
// SPDX-License-Identifier: Apache-2.0
#include "counters.h"

namespace checkout {

void Counters::count_response(int status, std::uint64_t body_bytes) {
  const auto status_class = static_cast<std::size_t>(status / 100);
  if (status_class < responses.size()) add(responses[status_class]);
  add(response_bytes, body_bytes);
}

std::string Counters::render() const {
  std::string out;
  const auto line = [&out](const std::string& name, const Counter& counter) {
    out +=
        "checkout_" + name + ' ' + std::to_string(counter.load(std::memory_order_relaxed)) + '\n';
  };
  line("connections_accepted_total", connections_accepted);
  line("connections_open", connections_open);
  line("connections_refused_total", connections_refused);
  line("request_timeouts_total", request_timeouts);
  for (std::size_t i = 1; i < responses.size(); ++i) {
    line("responses_total{class=\"" + std::to_string(i) + "xx\"}", responses[i]);
  }
  line("response_bytes_total", response_bytes);
  line("orders_total", orders);
  line("kv_calls_total", kv_calls);
  line("kv_failures_total", kv_failures);
  line("audit_lines_total", audit_lines);
  line("audit_refused_total", audit_refused);
  return out;
}

}  // namespace checkout
