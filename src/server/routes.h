// The resources of the API, each a function from a call to a response; and the whole answer to one
// request: access, page or API, ETag, compression. No socket: tests call it directly.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "server/access.h"
#include "server/assets.h"
#include "server/flame_json.h"
#include "server/router.h"
#include "server/run_store.h"

namespace dial9::server {

// Adds every resource. `store` and `namer` outlive the router.
void add_routes(Router& router, RunStore& store, SharedNamer& namer);

// Answers requests for the page (`assets`) and for the API under /api/v1. Thread-safe.
class Service {
 public:
  // `namer` names frames; null: they stay unnamed. Called by one thread at a time.
  Service(AccessRules rules, RunStore& store, std::span<const Asset> assets,
          analysis::FrameNamer* namer = nullptr);
  Response handle(const Request& request) const;

 private:
  AccessRules rules_;
  std::unique_ptr<SharedNamer> namer_;
  Router router_;
  std::span<const Asset> assets_;
};

}  // namespace dial9::server
