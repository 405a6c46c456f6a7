// The load generator's HTTP response parser: collect the head up to its empty line, then count down
// the body.
// SPDX-License-Identifier: Apache-2.0
#include "response_parser.h"

#include <algorithm>
#include <charconv>

namespace checkout::load {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class Number>
bool to_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

void ResponseParser::reset() {
  state_ = State::kHead;
  head_.clear();
  status_ = 0;
  keeps_alive_ = true;
  has_length_ = false;
  body_bytes_ = 0;
  missing_bytes_ = 0;
  error_ = "";
}

void ResponseParser::fail(const char* why) {
  state_ = State::kBad;
  error_ = why;
}

std::size_t ResponseParser::feed(std::string_view input) {
  std::size_t taken = 0;
  if (state_ == State::kHead) {
    const std::size_t before = head_.size();
    head_ += input.substr(0, kMaxHeadBytes - before);
    const std::size_t from = before < kHeadEnd.size() ? 0 : before - kHeadEnd.size() + 1;
    const std::size_t end = head_.find(kHeadEnd, from);
    if (end == std::string::npos) {
      if (head_.size() >= kMaxHeadBytes) fail("head too long");
      return head_.size() - before;
    }
    head_.resize(end + kHeadEnd.size());
    taken = head_.size() - before;
    parse_head();
  }
  if (state_ == State::kBody) {
    const std::size_t body = std::min(missing_bytes_, input.size() - taken);
    missing_bytes_ -= body;
    taken += body;
    if (missing_bytes_ == 0) state_ = State::kDone;
  }
  return taken;
}

void ResponseParser::parse_head() {
  std::string_view rest(head_);
  bool is_first = true;
  while (rest.size() > 2) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (!(is_first ? parse_status_line(line) : parse_header(line))) return;
    is_first = false;
  }
  const bool has_no_body = status_ == 204 || status_ == 304;
  if (!has_length_ && !has_no_body) return fail("no Content-Length");
  state_ = State::kBody;
}

bool ResponseParser::parse_status_line(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  if (!line.starts_with(kVersion) || line.size() < 12 || line[8] != ' ' ||
      !to_number(line.substr(9, 3), status_) || status_ < 200 || status_ > 599) {
    fail("bad status line");
    return false;
  }
  keeps_alive_ = line[7] == '1';
  return true;
}

bool ResponseParser::parse_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    fail("bad header");
    return false;
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim(line.substr(colon + 1));
  if (equals_ignoring_case(name, "content-length")) {
    if (!to_number(value, body_bytes_)) {
      fail("bad Content-Length");
      return false;
    }
    has_length_ = true;
    missing_bytes_ = body_bytes_;
  } else if (equals_ignoring_case(name, "connection")) {
    if (equals_ignoring_case(value, "close")) keeps_alive_ = false;
    if (equals_ignoring_case(value, "keep-alive")) keeps_alive_ = true;
  } else if (equals_ignoring_case(name, "transfer-encoding")) {
    fail("Transfer-Encoding is not supported");
    return false;
  }
  return true;
}

}  // namespace checkout::load
