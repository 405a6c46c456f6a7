// See url.h.
// Strongest property: no output byte is ever decoded twice.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/url.h"

namespace dial9::server {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Calls `part` with each piece between separators; false as soon as a call says so.
template <class F>
bool for_each_part(std::string_view text, char separator, F part) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (!part(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool is_query) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && is_query) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

std::optional<Target> parse_target(std::string_view target) {
  if (target.empty() || target.front() != '/') return std::nullopt;
  target = target.substr(0, target.find('#'));
  const std::size_t question = target.find('?');
  const std::string_view path =
      target.substr(1, question == std::string_view::npos ? std::string_view::npos : question - 1);
  Target out;
  const bool is_path_good = for_each_part(path, '/', [&](std::string_view part) {
    const auto decoded = percent_decode(part, false);
    if (!decoded || *decoded == "." || *decoded == "..") return false;
    out.segments.push_back(*decoded);
    return true;
  });
  if (!is_path_good) return std::nullopt;
  while (!out.segments.empty() && out.segments.back().empty()) out.segments.pop_back();
  if (question == std::string_view::npos) return out;
  const bool is_query_good =
      for_each_part(target.substr(question + 1), '&', [&](std::string_view part) {
        if (part.empty()) return true;
        const std::size_t equals = part.find('=');
        const auto name = percent_decode(part.substr(0, equals), true);
        const auto value = equals == std::string_view::npos
                               ? std::optional<std::string>("")
                               : percent_decode(part.substr(equals + 1), true);
        if (!name || !value) return false;
        out.query.emplace_back(*name, *value);
        return true;
      });
  if (!is_query_good) return std::nullopt;
  return out;
}

}  // namespace dial9::server
