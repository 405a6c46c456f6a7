// See gzip.h.
// Strongest property: a reply is never larger than without it.
// Spec: docs/spec/http_api.md, "Caching".
// SPDX-License-Identifier: Apache-2.0
#include "server/gzip.h"

#include <libdeflate.h>

#include <memory>

namespace dial9::server {
namespace {

constexpr std::size_t kLeastBytes = 1024;
constexpr int kFastestLevel = 1;

struct FreeCompressor {
  void operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
  }
};

}  // namespace

std::string gzip_if_smaller(std::string_view body) {
  const std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor(
      libdeflate_alloc_compressor(kFastestLevel));
  if (!compressor) return {};
  std::string out(body.size() - body.size() / 8, '\0');
  // Returns 0 where the result doesn't fit into what would still pay.
  out.resize(
      libdeflate_gzip_compress(compressor.get(), body.data(), body.size(), out.data(), out.size()));
  return out;
}

void compress(const Request& request, Response& response) {
  if (!request.accepts_gzip || response.is_gzipped || !response.static_body.empty() ||
      response.body.size() < kLeastBytes) {
    return;
  }
  std::string smaller = gzip_if_smaller(response.body);
  if (smaller.empty()) return;
  response.body = std::move(smaller);
  response.is_gzipped = true;
}

}  // namespace dial9::server
