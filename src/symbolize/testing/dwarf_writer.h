// Debug information as bytes, for tests of its readers: a value at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace dial9::symbolize::testing {

class DwarfWriter {
 public:
  DwarfWriter& u8(std::uint64_t value) { return number(value, 1); }
  DwarfWriter& number(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
    return *this;
  }
  DwarfWriter& uleb(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) u8((value & 0x7f) | 0x80);
    return u8(value);
  }
  DwarfWriter& ulebs(std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values) uleb(value);
    return *this;
  }
  DwarfWriter& text(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return u8(0);
  }
  DwarfWriter& append(const DwarfWriter& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  // With its length before it, as units have it.
  DwarfWriter& sized(const DwarfWriter& other) {
    return number(other.bytes_.size(), 4).append(other);
  }
  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace dial9::symbolize::testing
