// Taking a request's target apart: path segments and query pairs, percent-decoded once, after the
// split, so that an encoded slash or ampersand can never change the structure. Pure functions.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dial9::server {

struct Target {
  std::vector<std::string> segments;  // of the path, without empty ones at the end
  std::vector<std::pair<std::string, std::string>> query;
};

// Undoes %xx (and, in a query, '+' for a space). Nothing for a broken escape or an encoded NUL.
std::optional<std::string> percent_decode(std::string_view text, bool is_query);

// Nothing for a target that isn't an absolute path, or with a broken escape. Segments "." and ".."
// are refused too: no resource has such a name.
std::optional<Target> parse_target(std::string_view target);

}  // namespace dial9::server
