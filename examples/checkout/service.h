// What the checkout service answers: its routes, their checks, the store and the audit log behind
// them. Knows no HTTP library; http_server.h calls handle() on a connection's strand.
//
//   POST /checkout   {"cart":ID,"items":[{"sku":SKU,"quantity":N},...]} -> 201 {"order":N,...}
//   PUT  /cart/{id}  any JSON object -> 200          GET /cart/{id} -> 200 or 404
//   GET  /healthz    200 if the store answers, else 503      GET /metrics -> counters as text
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "audit_log.h"
#include "counters.h"
#include "faults.h"
#include "http_server.h"
#include "kv_pool.h"

namespace checkout {

class Service {
 public:
  Service(std::shared_ptr<KvPool> store, std::shared_ptr<AuditLog> audit,
          std::shared_ptr<Faults> faults, std::shared_ptr<Counters> counters);

  boost::asio::awaitable<HttpResponse> handle(HttpRequest request);

 private:
  boost::asio::awaitable<HttpResponse> route(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> check_out(std::string_view body);
  boost::asio::awaitable<HttpResponse> get_cart(std::string_view id);
  boost::asio::awaitable<HttpResponse> put_cart(std::string_view id, std::string_view body);
  boost::asio::awaitable<HttpResponse> health();

  const std::shared_ptr<KvPool> store_;
  const std::shared_ptr<AuditLog> audit_;
  const std::shared_ptr<Faults> faults_;
  const std::shared_ptr<Counters> counters_;
};

}  // namespace checkout
