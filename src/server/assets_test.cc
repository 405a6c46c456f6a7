// SPDX-License-Identifier: Apache-2.0
#include "server/assets.h"

#include <gtest/gtest.h>

#include "server/gzip.h"

namespace dial9::server {
namespace {

// Long enough for gzip to pay.
const std::string kPage(4000, 'p');
const std::string kPacked = gzip_if_smaller(kPage);
const Asset kAssets[] = {
    {"index.html", "text/html; charset=utf-8", "\"abc\"", kPacked, false},
    {"assets/index-12345678.js", "text/javascript", "\"def\"", kPacked, true},
};

Request get(std::string target) {
  Request out;
  out.target = std::move(target);
  out.accepts_gzip = true;
  return out;
}

TEST(Assets, ServeThePageAtTheRootWithAPolicyThatAllowsNoForeignScript) {
  const Response response = serve_asset(kAssets, get("/"));
  EXPECT_EQ(response.status, 200u);
  EXPECT_EQ(response.content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(response.is_gzipped);
  EXPECT_EQ(response.static_body, kPacked);
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_NE(response.headers[0].second.find("script-src 'self'"), std::string::npos);
}

TEST(Assets, InflateForAClientThatTakesNoGzip) {
  Request request = get("/index.html");
  request.accepts_gzip = false;
  const Response response = serve_asset(kAssets, request);
  EXPECT_FALSE(response.is_gzipped);
  EXPECT_EQ(response.body, kPage);
}

TEST(Assets, AnswerAKnownETagWithoutABody) {
  Request request = get("/");
  request.if_none_match = "\"abc\"";
  const Response response = serve_asset(kAssets, request);
  EXPECT_EQ(response.status, 304u);
  EXPECT_TRUE(response.static_body.empty());
}

TEST(Assets, MayBeKeptForEverOnlyUnderAHashedName) {
  EXPECT_FALSE(serve_asset(kAssets, get("/")).is_cacheable);
  EXPECT_TRUE(serve_asset(kAssets, get("/assets/index-12345678.js")).is_cacheable);
}

TEST(Assets, NeverLeadOutOfTheTable) {
  for (const char* path : {"/../etc/passwd", "/..%2f..%2fetc/passwd", "/assets/../index.html",
                           "/etc/passwd", "/%2fetc%2fpasswd", "//index.html"}) {
    EXPECT_GE(serve_asset(kAssets, get(path)).status, 400u) << path;
  }
}

TEST(Assets, AreOnlyRead) {
  Request request = get("/");
  request.method = Method::kPost;
  EXPECT_EQ(serve_asset(kAssets, request).status, 405u);
}

TEST(Assets, HoldAnIndexInThisBuild) {
  EXPECT_EQ(serve_asset(embedded_assets(), get("/")).status, 200u);
}

TEST(Gzip, IsUsedOnlyWhereItPays) {
  std::string noise;
  for (unsigned i = 0, x = 1; i < 4000; ++i) {
    x = x * 1664525u + 1013904223u;
    noise.push_back(static_cast<char>(x >> 24));
  }
  for (const std::string& body : {std::string("short"), noise}) {
    Response response;
    response.body = body;
    compress(get("/"), response);
    EXPECT_FALSE(response.is_gzipped);
    EXPECT_EQ(response.body, body);
  }
  Response response;
  response.body = kPage;
  compress(get("/"), response);
  EXPECT_TRUE(response.is_gzipped);
  EXPECT_EQ(response.body, kPacked);
}

TEST(Gzip, IsNotUsedForAClientThatDoesNotTakeIt) {
  Request request = get("/");
  request.accepts_gzip = false;
  Response response;
  response.body = kPage;
  compress(request, response);
  EXPECT_FALSE(response.is_gzipped);
}

}  // namespace
}  // namespace dial9::server
