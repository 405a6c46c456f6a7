// The viewer's files inside the binary, gzipped at build time, with a hash of their content as
// ETag. The table is made by embed_assets.py from what `npm run build` left.
// Spec: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "server/http.h"

namespace dial9::server {

struct Asset {
  std::string_view path;  // without a leading slash, e.g. "index.html"
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view gzip;  // the content as one gzip member
  bool is_hashed;         // the path bears a hash, so that it may be cached for ever
};

std::span<const Asset> embedded_assets();

// The file for a page request: "/" is index.html. 404 for others, 304 for a known ETag. A client
// that doesn't take gzip (none of today's browsers) gets it inflated.
Response serve_asset(std::span<const Asset> assets, const Request& request);

}  // namespace dial9::server
