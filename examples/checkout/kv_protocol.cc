// Parser and writer of the store's line protocol; see the header for the grammar.
// SPDX-License-Identifier: Apache-2.0
#include "kv_protocol.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace checkout::kv {
namespace {

// One line without its newline, or the reason why there is none yet.
struct Line {
  ParseStatus status;
  std::string_view text;
};

Line first_line(std::string_view buffered) {
  const std::size_t end = buffered.substr(0, kMaxLineBytes).find('\n');
  if (end != std::string_view::npos) return {ParseStatus::kComplete, buffered.substr(0, end)};
  return {buffered.size() < kMaxLineBytes ? ParseStatus::kNeedMore : ParseStatus::kBad, {}};
}

// Takes the next space-separated word off `text`; empty if there is none.
std::string_view take_word(std::string_view& text) {
  const std::size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  return word;
}

template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <class Message>
Parsed<Message> bad(std::string why) {
  Parsed<Message> parsed;
  parsed.status = ParseStatus::kBad;
  parsed.error = std::move(why);
  return parsed;
}

template <class Message>
Parsed<Message> no_line(ParseStatus status) {
  if (status == ParseStatus::kBad) return bad<Message>("line too long");
  return {};
}

// Completes `parsed` with the `length` bytes and the newline that follow the line of `line_bytes`.
template <class Message>
void take_bytes(std::string_view buffered, std::size_t line_bytes, std::string_view length_text,
                Parsed<Message>& parsed, std::string& into) {
  const auto length = to_number<std::size_t>(length_text);
  if (!length || *length > kMaxValueBytes) {
    parsed = bad<Message>("bad length");
    return;
  }
  const std::size_t total = line_bytes + *length + 1;
  if (buffered.size() < total) return;
  if (buffered[total - 1] != '\n') {
    parsed = bad<Message>("value not ended by a newline");
    return;
  }
  into = buffered.substr(line_bytes, *length);
  parsed.status = ParseStatus::kComplete;
  parsed.consumed = total;
}

std::string_view verb_text(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "GET";
    case Verb::kSet:
      return "SET";
    case Verb::kAdd:
      return "ADD";
    case Verb::kDelete:
      return "DEL";
    case Verb::kPing:
      return "PING";
  }
  return "PING";
}

std::optional<Verb> to_verb(std::string_view word) {
  for (Verb verb : {Verb::kGet, Verb::kSet, Verb::kAdd, Verb::kDelete, Verb::kPing}) {
    if (word == verb_text(verb)) return verb;
  }
  return std::nullopt;
}

}  // namespace

bool is_valid_key(std::string_view key) {
  return !key.empty() && key.size() <= kMaxKeyBytes &&
         std::ranges::all_of(key, [](char c) { return c > ' ' && c < '\x7f'; });
}

Parsed<Request> parse_request(std::string_view buffered) {
  const Line line = first_line(buffered);
  if (line.status != ParseStatus::kComplete) return no_line<Request>(line.status);
  std::string_view rest = line.text;
  const auto verb = to_verb(take_word(rest));
  if (!verb) return bad<Request>("unknown verb");

  Parsed<Request> parsed;
  Request& request = parsed.message;
  request.verb = *verb;
  if (*verb != Verb::kPing) {
    request.key = take_word(rest);
    if (!is_valid_key(request.key)) return bad<Request>("bad key");
  }
  const std::size_t line_bytes = line.text.size() + 1;
  if (*verb == Verb::kSet) {
    take_bytes(buffered, line_bytes, rest, parsed, request.value);
    return parsed;
  }
  if (*verb == Verb::kAdd) {
    const auto delta = to_number<std::int64_t>(rest);
    if (!delta) return bad<Request>("bad number");
    request.delta = *delta;
  } else if (!rest.empty()) {
    return bad<Request>("too many words");
  }
  parsed.status = ParseStatus::kComplete;
  parsed.consumed = line_bytes;
  return parsed;
}

Parsed<Reply> parse_reply(std::string_view buffered) {
  const Line line = first_line(buffered);
  if (line.status != ParseStatus::kComplete) return no_line<Reply>(line.status);
  std::string_view rest = line.text;
  const std::string_view word = take_word(rest);
  const std::size_t line_bytes = line.text.size() + 1;

  Parsed<Reply> parsed;
  Reply& reply = parsed.message;
  if (word == "VALUE") {
    reply.kind = ReplyKind::kValue;
    take_bytes(buffered, line_bytes, rest, parsed, reply.text);
    return parsed;
  }
  if (word == "INT") {
    const auto number = to_number<std::int64_t>(rest);
    if (!number) return bad<Reply>("bad number");
    reply.kind = ReplyKind::kInt;
    reply.number = *number;
  } else if (word == "ERROR") {
    reply.kind = ReplyKind::kError;
    reply.text = rest;
  } else if (line.text == "NONE") {
    reply.kind = ReplyKind::kNone;
  } else if (line.text == "OK") {
    reply.kind = ReplyKind::kOk;
  } else if (line.text == "PONG") {
    reply.kind = ReplyKind::kPong;
  } else {
    return bad<Reply>("unknown reply");
  }
  parsed.status = ParseStatus::kComplete;
  parsed.consumed = line_bytes;
  return parsed;
}

std::string encode(const Request& request) {
  std::string out(verb_text(request.verb));
  if (request.verb != Verb::kPing) out += ' ' + request.key;
  if (request.verb == Verb::kSet) out += ' ' + std::to_string(request.value.size());
  if (request.verb == Verb::kAdd) out += ' ' + std::to_string(request.delta);
  out += '\n';
  if (request.verb == Verb::kSet) out += request.value + '\n';
  return out;
}

std::string encode(const Reply& reply) {
  switch (reply.kind) {
    case ReplyKind::kValue:
      return "VALUE " + std::to_string(reply.text.size()) + '\n' + reply.text + '\n';
    case ReplyKind::kNone:
      return "NONE\n";
    case ReplyKind::kOk:
      return "OK\n";
    case ReplyKind::kInt:
      return "INT " + std::to_string(reply.number) + '\n';
    case ReplyKind::kPong:
      return "PONG\n";
    case ReplyKind::kError:
      return "ERROR " + reply.text + '\n';
  }
  return "ERROR unknown reply\n";
}

}  // namespace checkout::kv
