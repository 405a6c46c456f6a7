// See router.h.
// Strongest property: a route function sees only parameters that it has named.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "server/json.h"

namespace dial9::server {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

bool is_capture(const std::string& part) { return part.front() == '{'; }

std::optional<std::vector<std::string>> match(const std::vector<std::string>& pattern,
                                              const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return std::nullopt;
  std::vector<std::string> captures;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_capture(pattern[i])) {
      captures.push_back(segments[i]);
    } else if (pattern[i] != segments[i]) {
      return std::nullopt;
    }
  }
  return captures;
}

std::string range_text(double least, double most) {
  char text[80];
  std::snprintf(text, sizeof text, "a number from %.15g to %.15g", least, most);
  return text;
}

struct Status {
  unsigned status;
  std::string_view code;
};

Status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {400, "bad_request"};
    case ErrorCode::kNotFound:
      return {404, "not_found"};
    case ErrorCode::kPermission:
      return {403, "forbidden"};
    case ErrorCode::kLimit:
      return {413, "too_large"};
    case ErrorCode::kCancelled:
      return {409, "not_ready"};
    default:
      return {500, "failed"};
  }
}

}  // namespace

std::optional<std::string_view> Call::query(std::string_view name) const {
  for (const auto& [key, value] : query_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<double> Call::number(std::string_view name, double least, double most,
                            std::optional<double> missing) const {
  const auto text = query(name);
  if (!text && missing) return *missing;
  double value = 0;
  if (text) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error == std::errc{} && end == text->data() + text->size() && std::isfinite(value) &&
        value >= least && value <= most) {
      return value;
    }
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "parameter '" + std::string(name) + "': give " + range_text(least, most));
}

Result<std::uint64_t> Call::integer(std::string_view name, std::uint64_t least, std::uint64_t most,
                                    std::optional<std::uint64_t> missing) const {
  const auto text = query(name);
  if (!text && missing) return *missing;
  std::uint64_t value = 0;
  if (text) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error == std::errc{} && end == text->data() + text->size() && value >= least &&
        value <= most) {
      return value;
    }
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "parameter '" + std::string(name) + "': give an integer from " +
                        std::to_string(least) + " to " + std::to_string(most));
}

void Router::add(Method method, std::string_view pattern, std::string_view parameters,
                 RouteFunction function) {
  routes_.push_back({method, split(pattern, '/'), split(parameters, ' '), std::move(function)});
}

Response Router::handle(const Request& request) const {
  auto target = parse_target(request.target);
  if (!target) {
    return error_response(400, "bad_request", "the address isn't a well-formed path and query");
  }
  const Method method = request.method == Method::kHead ? Method::kGet : request.method;
  bool is_known_path = false;
  for (const Route& route : routes_) {
    auto captures = match(route.pattern, target->segments);
    if (!captures) continue;
    is_known_path = true;
    if (route.method != method) continue;
    for (std::size_t i = 0; i < target->query.size(); ++i) {
      const std::string& name = target->query[i].first;
      const auto same = [&](const auto& pair) { return pair.first == name; };
      if (std::ranges::find(route.parameters, name) == route.parameters.end()) {
        return error_response(400, "bad_request",
                              "no parameter '" + name + "' here: see docs/spec/http_api.md");
      }
      if (std::ranges::count_if(target->query, same) > 1) {
        return error_response(400, "bad_request", "parameter '" + name + "' is given twice");
      }
    }
    return route.function(Call(request, std::move(*captures), std::move(target->query)));
  }
  if (is_known_path) {
    return error_response(405, "method_not_allowed", "use GET, or POST for open and close");
  }
  return error_response(404, "not_found", "no such resource: see docs/spec/http_api.md");
}

Response error_response(unsigned status, std::string_view code, std::string_view message) {
  Response out;
  out.status = status;
  const json body = {
      {"error", {{"code", std::string(code)}, {"message", std::string(message)}}}};
  out.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

Response error_response(const Error& error) {
  const Status status = status_of(error.code);
  return error_response(status.status, status.code, error.message);
}

}  // namespace dial9::server
