// The resources of the API, each a function from a call to a response; and the whole answer to one
// request: access, page or API, ETag, compression. No socket: tests call it directly.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "server/access.h"
#include "server/assets.h"
#include "server/router.h"
#include "server/run_store.h"

namespace dial9::server {

// Adds every resource. `store` outlives the router.
void add_routes(Router& router, RunStore& store);

// Answers requests for the page (`assets`) and for the API under /api/v1. Thread-safe.
class Service {
 public:
  Service(AccessRules rules, RunStore& store, std::span<const Asset> assets);
  Response handle(const Request& request) const;

 private:
  AccessRules rules_;
  Router router_;
  std::span<const Asset> assets_;
};

}  // namespace dial9::server
