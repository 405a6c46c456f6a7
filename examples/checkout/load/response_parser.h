// Reads HTTP/1.1 responses off a byte stream, as much as a load generator needs: status line,
// headers for length and keep-alive, body counted but not kept. No allocation in the steady state,
// no copy. Responses without Content-Length (chunked, read-until-close) are refused, not guessed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace checkout::load {

class ResponseParser {
 public:
  static constexpr std::size_t kMaxHeadBytes = 16 * 1024;

  enum class State : std::uint8_t { kHead, kBody, kDone, kBad };

  // Takes bytes off the front of `input` and returns how many; after kDone or kBad it takes none.
  std::size_t feed(std::string_view input);

  // Ready for the next response on the same connection.
  void reset();

  State state() const { return state_; }
  int status() const { return status_; }             // from the end of the head on
  bool keeps_alive() const { return keeps_alive_; }  // likewise
  std::size_t body_bytes() const { return body_bytes_; }
  const char* error() const { return error_; }  // what was wrong, if kBad

 private:
  void parse_head();
  bool parse_status_line(std::string_view line);
  bool parse_header(std::string_view line);
  void fail(const char* why);

  State state_ = State::kHead;
  std::string head_;
  int status_ = 0;
  bool keeps_alive_ = true;
  bool has_length_ = false;
  std::size_t body_bytes_ = 0;
  std::size_t missing_bytes_ = 0;
  const char* error_ = "";
};

}  // namespace checkout::load
