// See assets.h.
// Strongest property: only what was embedded can be served; no path ever reaches a file system.
// Spec: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/assets.h"

#include <libdeflate.h>

#include <cstring>
#include <memory>

#include "server/url.h"

namespace dial9::server {
namespace {

// Scripts and styles come from this server only; nothing may frame the page.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string inflate(std::string_view gzip) {
  std::uint32_t size_bytes = 0;  // the last 4 bytes of a member: its inflated size
  std::memcpy(&size_bytes, gzip.data() + gzip.size() - sizeof size_bytes, sizeof size_bytes);
  std::string out(size_bytes, '\0');
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  const auto result = libdeflate_gzip_decompress(decompressor.get(), gzip.data(), gzip.size(),
                                                 out.data(), out.size(), nullptr);
  if (result != LIBDEFLATE_SUCCESS) out.clear();
  return out;
}

std::string wanted_path(const Target& target) {
  std::string out;
  for (std::size_t i = 0; i < target.segments.size(); ++i) {
    if (i != 0) out += '/';
    out += target.segments[i];
  }
  return out.empty() ? "index.html" : out;
}

}  // namespace

Response serve_asset(std::span<const Asset> assets, const Request& request) {
  const auto target = parse_target(request.target);
  if (!target) return error_response(400, "bad_request", "the address isn't well formed");
  if (request.method != Method::kGet && request.method != Method::kHead) {
    return error_response(405, "method_not_allowed", "use GET");
  }
  const std::string path = wanted_path(*target);
  for (const Asset& asset : assets) {
    if (asset.path != path) continue;
    Response out;
    out.content_type = asset.content_type;
    out.etag = asset.etag;
    out.is_cacheable = asset.is_hashed;
    out.headers.emplace_back("Content-Security-Policy", kPolicy);
    if (request.if_none_match == asset.etag) {
      out.status = 304;
    } else if (request.accepts_gzip) {
      out.static_body = asset.gzip;
      out.is_gzipped = true;
    } else {
      out.body = inflate(asset.gzip);
    }
    return out;
  }
  return error_response(404, "not_found", "no such page: the viewer is at /");
}

}  // namespace dial9::server
