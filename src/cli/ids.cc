// SPDX-License-Identifier: Apache-2.0
#include "cli/ids.h"

#include <charconv>

namespace dial9::cli {

std::optional<std::uint64_t> to_id(const std::string& text) {
  const bool is_hex = text.starts_with("0x");
  std::uint64_t id = 0;
  const char* begin = text.data() + (is_hex ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, id, is_hex ? 16 : 10);
  return error == std::errc() && stop == end && begin != end ? std::optional(id) : std::nullopt;
}

std::string check_id(const std::string& text) {
  return to_id(text) ? "" : "'" + text + "' is no id: give a whole number, such as 17 or 0x11";
}

}  // namespace dial9::cli
