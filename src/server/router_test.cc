// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

#include <gtest/gtest.h>

namespace dial9::server {
namespace {

Request get(std::string target) {
  Request out;
  out.target = std::move(target);
  return out;
}

Router sample() {
  Router out;
  out.add(Method::kGet, "runs/{run}/lanes", "t0 bins", [](const Call& call) {
    Response response;
    response.body = call.capture(0) + "|" + std::string(call.query("t0").value_or("-"));
    return response;
  });
  out.add(Method::kPost, "runs/{run}/open", "", [](const Call&) { return Response{}; });
  return out;
}

TEST(Router, HandsOverWhatThePatternCaughtAndTheQuery) {
  EXPECT_EQ(sample().handle(get("/runs/a%2Fb/lanes?t0=5")).body, "a/b|5");
}

TEST(Router, AnswersHeadLikeGet) {
  Request request = get("/runs/a/lanes");
  request.method = Method::kHead;
  EXPECT_EQ(sample().handle(request).status, 200u);
}

TEST(Router, RefusesAParameterThatTheRouteDoesNotName) {
  const Response response = sample().handle(get("/runs/a/lanes?t=5"));
  EXPECT_EQ(response.status, 400u);
  EXPECT_NE(response.body.find("no parameter 't'"), std::string::npos);
}

TEST(Router, RefusesAParameterGivenTwice) {
  EXPECT_EQ(sample().handle(get("/runs/a/lanes?t0=5&t0=6")).status, 400u);
}

TEST(Router, TellsAWrongMethodFromAnUnknownPath) {
  EXPECT_EQ(sample().handle(get("/runs/a/open")).status, 405u);
  EXPECT_EQ(sample().handle(get("/runs/a/shut")).status, 404u);
  EXPECT_EQ(sample().handle(get("/runs/a/lanes/more")).status, 404u);
}

TEST(Call, ReadsNumbersWithinTheirRangeOnly) {
  const Request request;
  const Call call(request, {}, {{"a", "1.5"}, {"b", "x"}, {"c", "inf"}, {"d", "7 "}, {"e", ""}});
  EXPECT_EQ(*call.number("a", 0, 2), 1.5);
  EXPECT_FALSE(call.number("a", 2, 3));
  for (const char* name : {"b", "c", "d", "e", "missing"}) EXPECT_FALSE(call.number(name, 0, 9));
  EXPECT_EQ(*call.number("missing", 0, 9, 4.0), 4.0);
}

TEST(Call, ReadsIntegersAndNamesTheRangeWhereItCannot) {
  const Request request;
  const Call call(request, {},
                  {{"a", "12"}, {"b", "-1"}, {"c", "1.5"}, {"d", "99999999999999999999"}});
  EXPECT_EQ(*call.integer("a", 1, 12), 12u);
  for (const char* name : {"b", "c", "d"}) EXPECT_FALSE(call.integer(name, 0, 100)) << name;
  EXPECT_NE(call.integer("a", 1, 11).error().message.find("from 1 to 11"), std::string::npos);
}

TEST(ErrorResponse, IsJsonWithACodeAlsoForTextThatIsNotUtf8) {
  const Response response = error_response(404, "not_found", "no \xff run \"x\"");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_NE(response.body.find("\"code\":\"not_found\""), std::string::npos);
  EXPECT_NE(response.body.find("\\\"x\\\""), std::string::npos);
}

}  // namespace
}  // namespace dial9::server
