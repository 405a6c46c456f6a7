// The line protocol between the checkout service and its key-value store.
//
//   GET key\n            -> VALUE length\nbytes\n  or  NONE\n
//   SET key length\nbytes\n -> OK\n
//   ADD key delta\n      -> INT n\n       (a missing key counts as 0)
//   DEL key\n            -> OK\n          (also if there was none)
//   PING\n               -> PONG\n
//   anything else        -> ERROR text\n, and the store closes the connection if it can't go on
//
// Parsing is a pure function over what is buffered: it never reads past a message, never throws,
// and refuses what is over the limits before it is buffered.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace checkout::kv {

inline constexpr std::size_t kMaxKeyBytes = 250;
inline constexpr std::size_t kMaxValueBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxLineBytes = 320;  // verb, key, number, newline

enum class Verb : std::uint8_t { kGet, kSet, kAdd, kDelete, kPing };

struct Request {
  Verb verb = Verb::kPing;
  std::string key;         // 1 to kMaxKeyBytes printable bytes without a space; empty for PING
  std::string value;       // SET only
  std::int64_t delta = 0;  // ADD only
};

enum class ReplyKind : std::uint8_t { kValue, kNone, kOk, kInt, kPong, kError };

struct Reply {
  ReplyKind kind = ReplyKind::kOk;
  std::string text;         // the value, or the error's one line
  std::int64_t number = 0;  // INT only
};

enum class ParseStatus : std::uint8_t { kComplete, kNeedMore, kBad };

template <class Message>
struct Parsed {
  ParseStatus status = ParseStatus::kNeedMore;
  Message message{};
  std::size_t consumed = 0;  // bytes of the input that the message took; 0 unless complete
  std::string error;         // one line, set if bad
};

// Reads one message from the front of `buffered`. kNeedMore: read more and call again with the
// whole. kBad: the stream can't be understood any further.
Parsed<Request> parse_request(std::string_view buffered);
Parsed<Reply> parse_reply(std::string_view buffered);

// The bytes of a message. The caller keeps the limits (see is_valid_key).
std::string encode(const Request& request);
std::string encode(const Reply& reply);

bool is_valid_key(std::string_view key);

}  // namespace checkout::kv
