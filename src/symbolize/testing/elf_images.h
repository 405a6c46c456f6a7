// ELF files as bytes, for tests that read, damage and exchange them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "symbolize/elf_file.h"

namespace dial9::symbolize::testing {

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// `bytes` outlives it.
inline FileReader reader_of(const std::string& bytes) {
  return [&bytes](std::uint64_t offset, std::span<std::uint8_t> to) {
    if (offset > bytes.size() || to.size() > bytes.size() - offset) return false;
    std::memcpy(to.data(), bytes.data() + offset, to.size());
    return true;
  };
}

// The same file as that of another build: `from` and `to` are build ids in hexadecimal.
inline std::string with_build_id(std::string bytes, const std::string& from,
                                 const std::string& to) {
  const auto raw = [](const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
      out += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    }
    return out;
  };
  const std::string old = raw(from);
  const std::size_t at = bytes.find(old);
  if (at != std::string::npos) bytes.replace(at, old.size(), raw(to));
  return bytes;
}

}  // namespace dial9::symbolize::testing
