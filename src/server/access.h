// Who may ask: Host and Origin against DNS rebinding and foreign pages, a bearer token on addresses
// that aren't loopback. Pure: decides from the request's headers alone, before any route runs.
// Spec: docs/spec/http_api.md, "Who may ask".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/http.h"

namespace dial9::server {

struct AccessRules {
  bool is_loopback = true;  // bound to a loopback address only
  std::string token;        // empty: none is asked for; never empty where !is_loopback
};

// Nothing: let it through; else the refusal. `is_api` false: the page's own files, which bear no
// data and which a browser fetches without a token.
std::optional<Response> refuse(const AccessRules& rules, const Request& request, bool is_api);

// 32 characters from the system's random source. Error kIo where there is none.
Result<std::string> make_token();

}  // namespace dial9::server
