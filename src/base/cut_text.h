// Texts that are too long: cut, and told apart by a hash of the whole. Strongest property: two
// texts that begin alike stay two; none is cut within a UTF-8 character.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace dial9 {

inline constexpr std::string_view kCutMark = "…#";  // and a hash of the whole, 16 digits
inline constexpr std::size_t kCutTailBytes = kCutMark.size() + 16;

// At most the first `kept` bytes, and the tail. Of one that isn't longer than that: itself.
inline std::string cut_text(std::string_view text, std::size_t kept) {
  if (text.size() <= kept) return std::string(text);
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, kCutTailBytes + 1> tail{};
  std::snprintf(tail.data(), tail.size(), "%s%016llx", kCutMark.data(),
                static_cast<unsigned long long>(hash));
  while (kept != 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;
  return std::string(text.substr(0, kept)) + tail.data();
}

}  // namespace dial9
