// The server's JSON value, for headers; see json.h. Kept apart, since that is slow to compile.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace dial9::server {

// The library's own; that it is another type gives its JSON value functions of ours.
template <class T, class Enabled>
struct JsonConversion;

using json = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t,
                                  std::uint64_t, double, std::allocator, JsonConversion>;

}  // namespace dial9::server
