// The store's line protocol: round trips, messages in pieces, and every way to be wrong.
// SPDX-License-Identifier: Apache-2.0
#include "kv_protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace checkout::kv {
namespace {

std::vector<Request> requests() {
  return {{Verb::kGet, "cart:7", "", 0},    {Verb::kSet, "cart:7", "two\nlines and a space", 0},
          {Verb::kSet, "empty", "", 0},     {Verb::kAdd, "sold:tea", "", -42},
          {Verb::kDelete, "cart:7", "", 0}, {Verb::kPing, "", "", 0}};
}

std::vector<Reply> replies() {
  return {{ReplyKind::kValue, "a\nb", 0}, {ReplyKind::kNone, "", 0},
          {ReplyKind::kOk, "", 0},        {ReplyKind::kInt, "", -9},
          {ReplyKind::kPong, "", 0},      {ReplyKind::kError, "store is full", 0}};
}

TEST(KvProtocol, ReadsBackEveryRequestItWrites) {
  for (const Request& request : requests()) {
    const std::string bytes = encode(request);
    const auto parsed = parse_request(bytes + "PING\n");
    ASSERT_EQ(parsed.status, ParseStatus::kComplete) << bytes;
    EXPECT_EQ(parsed.consumed, bytes.size());
    EXPECT_EQ(parsed.message.verb, request.verb);
    EXPECT_EQ(parsed.message.key, request.key);
    EXPECT_EQ(parsed.message.value, request.value);
    EXPECT_EQ(parsed.message.delta, request.delta);
  }
}

TEST(KvProtocol, ReadsBackEveryReplyItWrites) {
  for (const Reply& reply : replies()) {
    const std::string bytes = encode(reply);
    const auto parsed = parse_reply(bytes + "OK\n");
    ASSERT_EQ(parsed.status, ParseStatus::kComplete) << bytes;
    EXPECT_EQ(parsed.consumed, bytes.size());
    EXPECT_EQ(parsed.message.kind, reply.kind);
    EXPECT_EQ(parsed.message.text, reply.text);
    EXPECT_EQ(parsed.message.number, reply.number);
  }
}

TEST(KvProtocol, AsksForMoreAtEveryCut) {
  for (const Request& request : requests()) {
    const std::string bytes = encode(request);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      EXPECT_EQ(parse_request(std::string_view(bytes).substr(0, cut)).status,
                ParseStatus::kNeedMore)
          << bytes << " cut at " << cut;
    }
  }
  for (const Reply& reply : replies()) {
    const std::string bytes = encode(reply);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      EXPECT_EQ(parse_reply(std::string_view(bytes).substr(0, cut)).status, ParseStatus::kNeedMore)
          << bytes << " cut at " << cut;
    }
  }
}

TEST(KvProtocol, RefusesBadRequestsWithAReason) {
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  for (const std::string& wrong :
       {std::string("FROB x\n"), std::string("GET\n"), std::string("GET a b\n"),
        std::string("get a\n"), std::string("SET a -1\n"), std::string("SET a 1048577\n"),
        std::string("SET a 1\nxy"), std::string("ADD a\n"), std::string("ADD a 1x\n"),
        std::string("ADD a 99999999999999999999\n"), std::string("PING now\n"),
        "GET " + long_key + "\n", std::string("GET a\tb\n"), std::string("\n")}) {
    const auto parsed = parse_request(wrong);
    EXPECT_EQ(parsed.status, ParseStatus::kBad) << wrong;
    EXPECT_FALSE(parsed.error.empty()) << wrong;
  }
}

TEST(KvProtocol, RefusesBadReplies) {
  for (std::string_view wrong : {"HELLO\n", "VALUE x\n", "VALUE 1\nab", "INT\n", "OK then\n"}) {
    EXPECT_EQ(parse_reply(wrong).status, ParseStatus::kBad) << wrong;
  }
}

TEST(KvProtocol, RefusesALineWithoutAnEndBeforeItIsBufferedForEver) {
  const std::string endless(kMaxLineBytes, 'x');
  EXPECT_EQ(parse_request(std::string_view(endless).substr(1)).status, ParseStatus::kNeedMore);
  EXPECT_EQ(parse_request(endless).status, ParseStatus::kBad);
  EXPECT_EQ(parse_reply(endless).status, ParseStatus::kBad);
}

}  // namespace
}  // namespace checkout::kv
