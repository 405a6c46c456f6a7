// Routes: a pattern such as "runs/{run}/lanes" to a function, with the query parameters that it
// takes. A parameter that a route doesn't name is refused, so that a misspelt one is never silently
// missing. Built once, then read by all threads.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http.h"
#include "server/url.h"

namespace dial9::server {

// What a route function gets: the request, what the pattern's braces caught (in order), the query.
class Call {
 public:
  Call(const Request& request, std::vector<std::string> captures, Pairs query)
      : request_(request), captures_(std::move(captures)), query_(std::move(query)) {}

  const Request& request() const { return request_; }
  const std::string& capture(std::size_t i) const { return captures_.at(i); }
  std::optional<std::string_view> query(std::string_view name) const;

  // The number in a parameter. Errors: kInvalidArgument (missing without `missing`, no number, or
  // outside [least, most]), with a message that names the parameter and its range.
  Result<double> number(std::string_view name, double least, double most,
                        std::optional<double> missing = std::nullopt) const;
  Result<std::uint64_t> integer(std::string_view name, std::uint64_t least, std::uint64_t most,
                                std::optional<std::uint64_t> missing = std::nullopt) const;

 private:
  const Request& request_;
  std::vector<std::string> captures_;
  Pairs query_;
};

using RouteFunction = std::function<Response(const Call&)>;

class Router {
 public:
  // `pattern` without a leading slash; `parameters` separated by spaces.
  void add(Method method, std::string_view pattern, std::string_view parameters,
           RouteFunction function);

  // 404 for no such pattern, 405 for a wrong method, 400 for a broken target or an unknown or
  // doubled parameter; else what the route answers. HEAD is answered like GET.
  Response handle(const Request& request) const;

 private:
  struct Route {
    Method method;
    std::vector<std::string> pattern;  // "{name}" catches one segment
    std::vector<std::string> parameters;
    RouteFunction function;
  };
  std::vector<Route> routes_;
};

// The reply for an error of the engine or of a parameter: its code decides the status.
Response error_response(const Error& error);

}  // namespace dial9::server
