// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <gtest/gtest.h>

namespace dial9::server {
namespace {

const AccessRules kLocal{true, ""};
const AccessRules kOpen{false, "secret"};

Request from(std::string host, std::string origin = "", std::string authorization = "") {
  Request out;
  out.target = "/api/v1/runs";
  out.host = std::move(host);
  out.origin = std::move(origin);
  out.authorization = std::move(authorization);
  return out;
}

TEST(Access, LetsLocalNamesThroughOnLoopback) {
  for (const char* host : {"localhost", "localhost:9090", "127.0.0.1:1", "127.8.9.1", "[::1]:9090",
                           "[::ffff:127.0.0.1]:1"}) {
    EXPECT_FALSE(refuse(kLocal, from(host), true)) << host;
  }
}

TEST(Access, RefusesANameThatWasReboundToLoopback) {
  for (const char* host : {"evil.example", "evil.example:9090", "localhost.evil.example", "",
                           "127.0.0.1.evil.example", "[::1", "10.0.0.1"}) {
    const auto refusal = refuse(kLocal, from(host), true);
    ASSERT_TRUE(refusal) << host;
    EXPECT_EQ(refusal->status, 403u);
    EXPECT_TRUE(refuse(kLocal, from(host), false)) << "the page itself too: " << host;
  }
}

TEST(Access, RefusesPagesOfAnotherOrigin) {
  EXPECT_FALSE(refuse(kLocal, from("localhost:9090", "http://localhost:9090"), true));
  EXPECT_FALSE(refuse(kLocal, from("localhost:9090", "https://localhost:9090"), true));
  for (const char* origin : {"http://evil.example", "http://localhost:8080", "null",
                             "http://localhost:9090.evil.example", "localhost:9090"}) {
    EXPECT_TRUE(refuse(kLocal, from("localhost:9090", origin), true)) << origin;
  }
}

TEST(Access, AsksForTheTokenOnOtherAddresses) {
  const auto refusal = refuse(kOpen, from("box:9090"), true);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 401u);
  for (const char* wrong :
       {"Bearer secreT", "Bearer secret2", "Bearer ", "secret", "Basic secret"}) {
    EXPECT_TRUE(refuse(kOpen, from("box:9090", "", wrong), true)) << wrong;
  }
  EXPECT_FALSE(refuse(kOpen, from("box:9090", "", "Bearer secret"), true));
}

TEST(Access, DeliversThePageItselfWithoutAToken) {
  EXPECT_FALSE(refuse(kOpen, from("box:9090"), false));
}

TEST(Access, ChecksATokenOnLoopbackTooWhereOneIsGiven) {
  EXPECT_TRUE(refuse({true, "secret"}, from("localhost"), true));
}

TEST(Access, MakesADifferentTokenEachTime) {
  const auto first = make_token();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), 32u);
  EXPECT_NE(*first, *make_token());
}

TEST(Loopback, KnowsItsAddresses) {
  EXPECT_TRUE(is_loopback_address("127.0.0.1"));
  EXPECT_TRUE(is_loopback_address("::1"));
  EXPECT_FALSE(is_loopback_address("0.0.0.0"));
  EXPECT_FALSE(is_loopback_address("::"));
  EXPECT_FALSE(is_loopback_address("localhost"));
}

}  // namespace
}  // namespace dial9::server
