// The routes of the checkout service. Each handler is a plain sequence of awaits: check the input,
// count the goods in the store, save the order, write the audit line, answer.
// SPDX-License-Identifier: Apache-2.0
#include "service.h"

#include <dial9/event.h>
#include <dial9/span.h>

#include <utility>

#include "catalog.h"

namespace asio = boost::asio;

namespace checkout {
namespace {

DIAL9_SPAN(RequestSpan, "request", DIAL9_FIELDS((dial9::interned, method), (dial9::text, target)),
           DIAL9_FIELDS((std::uint32_t, status), (dial9::bytes_u64, body_bytes)));
DIAL9_EVENT(OrderPlaced, (std::int64_t, order), (std::int64_t, total_cents));

constexpr std::string_view kCartPrefix = "/cart/";

HttpResponse json_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

HttpResponse error_response(int status, std::string_view message) {
  return json_response(status, error_json(message));
}

HttpResponse unavailable(const std::expected<kv::Reply, std::string>& reply) {
  return error_response(503, reply ? reply->text : reply.error());
}

bool is_kind(const std::expected<kv::Reply, std::string>& reply, kv::ReplyKind kind) {
  return reply.has_value() && reply->kind == kind;
}

// Requests come out of functions: g++ 12 destroys a braced aggregate twice when it is a temporary
// of a co_await expression.
kv::Request ping() { return {}; }
kv::Request get(std::string key) { return {kv::Verb::kGet, std::move(key), {}, 0}; }
kv::Request set(std::string key, std::string value) {
  return {kv::Verb::kSet, std::move(key), std::move(value), 0};
}
kv::Request add(std::string key, std::int64_t delta) {
  return {kv::Verb::kAdd, std::move(key), {}, delta};
}

}  // namespace

Service::Service(std::shared_ptr<KvPool> store, std::shared_ptr<AuditLog> audit,
                 std::shared_ptr<Faults> faults, std::shared_ptr<Counters> counters)
    : store_(std::move(store)),
      audit_(std::move(audit)),
      faults_(std::move(faults)),
      counters_(std::move(counters)) {}

asio::awaitable<HttpResponse> Service::handle(HttpRequest request) {
  dial9::span<RequestSpan> span({request.method, request.target});
  HttpResponse response = co_await route(request);
  span.late.status = static_cast<std::uint32_t>(response.status);
  span.late.body_bytes = response.body.size();
  co_return response;
}

asio::awaitable<HttpResponse> Service::route(const HttpRequest& request) {
  const std::string_view target = request.target;
  if (target == "/healthz" && request.method == "GET") co_return co_await health();
  if (target == "/metrics" && request.method == "GET") {
    HttpResponse response = json_response(200, counters_->render());
    response.content_type = "text/plain; version=0.0.4";
    co_return response;
  }
  if (target == "/checkout") {
    if (request.method != "POST") co_return error_response(405, "use POST");
    co_await faults_->at_request();
    co_return co_await check_out(request.body);
  }
  if (target.starts_with(kCartPrefix)) {
    const std::string_view id = target.substr(kCartPrefix.size());
    if (!is_valid_cart(id)) co_return error_response(400, "bad cart id");
    if (request.method == "GET") {
      co_await faults_->at_request();
      co_return co_await get_cart(id);
    }
    if (request.method == "PUT") co_return co_await put_cart(id, request.body);
    co_return error_response(405, "use GET or PUT");
  }
  co_return error_response(404, "no such resource");
}

asio::awaitable<HttpResponse> Service::check_out(std::string_view body) {
  auto order = parse_order(body);
  if (!order) co_return error_response(400, order.error());
  for (const Item& item : order->items) {
    const auto sold = co_await store_->call(add("sold:" + item.sku, item.quantity));
    if (!is_kind(sold, kv::ReplyKind::kInt)) co_return unavailable(sold);
  }
  const auto number = co_await store_->call(add("orders", 1));
  if (!is_kind(number, kv::ReplyKind::kInt)) co_return unavailable(number);
  order->number = number->number;
  const std::string json = order->to_json();
  const auto saved = co_await store_->call(set("cart:" + order->cart, json));
  if (!is_kind(saved, kv::ReplyKind::kOk)) co_return unavailable(saved);
  const AuditLog::Outcome outcome = co_await audit_->append(json);
  if (outcome != AuditLog::Outcome::kWritten) {
    Counters::add(counters_->audit_refused);
    co_return error_response(503, "the audit log does not keep up");
  }
  Counters::add(counters_->audit_lines);
  Counters::add(counters_->orders);
  dial9::record(OrderPlaced{order->number, order->total_cents()});
  co_return json_response(201, json);
}

asio::awaitable<HttpResponse> Service::get_cart(std::string_view id) {
  auto found = co_await store_->call(get("cart:" + std::string(id)));
  if (is_kind(found, kv::ReplyKind::kNone)) co_return error_response(404, "no such cart");
  if (!is_kind(found, kv::ReplyKind::kValue)) co_return unavailable(found);
  co_return json_response(200, std::move(found->text));
}

asio::awaitable<HttpResponse> Service::put_cart(std::string_view id, std::string_view body) {
  if (!is_json_object(body)) co_return error_response(400, "the body must be a JSON object");
  const auto saved = co_await store_->call(set("cart:" + std::string(id), std::string(body)));
  if (!is_kind(saved, kv::ReplyKind::kOk)) co_return unavailable(saved);
  co_return json_response(200, "{\"cart\":\"" + std::string(id) + "\"}\n");
}

asio::awaitable<HttpResponse> Service::health() {
  const auto pong = co_await store_->call(ping());
  if (!is_kind(pong, kv::ReplyKind::kPong)) co_return unavailable(pong);
  co_return json_response(200, "{\"status\":\"ok\"}\n");
}

}  // namespace checkout
