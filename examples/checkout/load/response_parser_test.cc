// The load generator's response parser, whole, in pieces, and with what a server may do wrong.
// SPDX-License-Identifier: Apache-2.0
#include "load/response_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace checkout::load {
namespace {

using State = ResponseParser::State;

constexpr std::string_view kCreated =
    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\ncontent-LENGTH:  5 \r\n\r\nhello";

TEST(ResponseParser, ReadsAResponseWhole) {
  ResponseParser parser;
  EXPECT_EQ(parser.feed(kCreated), kCreated.size());
  EXPECT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.status(), 201);
  EXPECT_EQ(parser.body_bytes(), 5u);
  EXPECT_TRUE(parser.keeps_alive());
}

TEST(ResponseParser, ReadsTheSameCutAtEveryByte) {
  for (std::size_t cut = 0; cut <= kCreated.size(); ++cut) {
    ResponseParser parser;
    EXPECT_EQ(parser.feed(kCreated.substr(0, cut)), cut);
    EXPECT_EQ(parser.feed(kCreated.substr(cut)), kCreated.size() - cut);
    EXPECT_EQ(parser.state(), State::kDone) << cut;
    EXPECT_EQ(parser.status(), 201) << cut;
  }
}

TEST(ResponseParser, LeavesTheNextResponseInTheInput) {
  ResponseParser parser;
  const std::string two = std::string(kCreated) + std::string(kCreated);
  EXPECT_EQ(parser.feed(two), kCreated.size());
  EXPECT_EQ(parser.feed(two), 0u);
  parser.reset();
  EXPECT_EQ(parser.feed(std::string_view(two).substr(kCreated.size())), kCreated.size());
  EXPECT_EQ(parser.state(), State::kDone);
}

TEST(ResponseParser, ObeysConnectionCloseAndTheVersion) {
  ResponseParser parser;
  parser.feed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(parser.state(), State::kDone);
  EXPECT_FALSE(parser.keeps_alive());
  parser.reset();
  parser.feed("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(parser.keeps_alive());
}

TEST(ResponseParser, NeedsNoLengthWhereThereCanBeNoBody) {
  ResponseParser parser;
  parser.feed("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(parser.state(), State::kDone);
}

TEST(ResponseParser, RefusesWhatItCannotMeasure) {
  for (std::string_view wrong :
       {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"}) {
    ResponseParser parser;
    parser.feed(wrong);
    EXPECT_EQ(parser.state(), State::kBad) << wrong;
    EXPECT_STRNE(parser.error(), "") << wrong;
  }
}

TEST(ResponseParser, BoundsTheHead) {
  ResponseParser parser;
  const std::string endless(ResponseParser::kMaxHeadBytes + 1, 'x');
  EXPECT_EQ(parser.feed(endless), ResponseParser::kMaxHeadBytes);
  EXPECT_EQ(parser.state(), State::kBad);
}

}  // namespace
}  // namespace checkout::load
