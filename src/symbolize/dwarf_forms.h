// Values in debug information, as bytes: numbers, and how long a value of each form is. Strongest
// property: nothing is read beyond the bytes that there are; behind the first thing that isn't
// there, or that isn't known, everything is 0 and is_whole() false.
// Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dial9::symbolize {

// Of code.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// How a unit writes addresses and offsets.
struct DwarfFormat {
  std::uint16_t version = 0;
  std::uint8_t address_bytes = 8;
  std::uint8_t offset_bytes = 4;
};

// Reads little-endian values one after the other.
class DwarfBytes {
 public:
  explicit DwarfBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool is_whole() const { return is_whole_; }
  bool is_at_end() const { return at_ == bytes_.size(); }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  void fail() {
    is_whole_ = false;
    at_ = bytes_.size();
  }

  void skip(std::uint64_t count) {
    if (count > left()) return fail();
    at_ += count;
  }
  // To a place that isn't before this one.
  void go_to(std::uint64_t at) { at < at_ ? fail() : skip(at - at_); }

  std::uint8_t u8() { return left() != 0 ? bytes_[at_++] : (fail(), std::uint8_t{0}); }
  // Of 1 to 8 bytes.
  std::uint64_t number(unsigned size) {
    std::uint64_t value = 0;
    if (size > left() || size > sizeof value) {
      fail();
      return 0;
    }
    for (unsigned i = 0; i < size; ++i) value |= std::uint64_t{bytes_[at_ + i]} << (8 * i);
    at_ += size;
    return value;
  }
  // Bits beyond the 64th are dropped; more than 10 bytes are none.
  std::uint64_t uleb() {
    std::uint8_t byte = u8();
    if (byte < 0x80) return byte;
    std::uint64_t value = byte & 0x7fU;
    for (unsigned shift = 7; shift < 70; shift += 7) {
      byte = u8();
      value |= shift < 64 ? static_cast<std::uint64_t>(byte & 0x7fU) << shift : 0;
      if (byte < 0x80) return is_whole_ ? value : 0;
    }
    fail();
    return 0;
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = u8();
      value |= shift < 64 ? static_cast<std::uint64_t>(byte & 0x7fU) << shift : 0;
      if (byte < 0x80) {
        if (shift + 7 < 64 && (byte & 0x40U) != 0) value |= ~std::uint64_t{0} << (shift + 7);
        return is_whole_ ? static_cast<std::int64_t>(value) : 0;
      }
    }
    fail();
    return 0;
  }
  // Up to a zero, which is passed.
  std::string_view text();
  std::span<const std::uint8_t> bytes(std::uint64_t count) {
    if (count > left()) {
      fail();
      return {};
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool is_whole_ = true;
};

// The text at an offset of a section; empty where there is none.
std::string_view text_in(std::span<const std::uint8_t> section, std::uint64_t offset);

inline constexpr std::uint32_t kVariableSize = ~std::uint32_t{0};
// How many bytes a value of the form takes; kVariableSize: its bytes say it, or the form isn't
// known.
std::uint32_t fixed_size_of(std::uint64_t form, const DwarfFormat& format);
// Passes one value. A form that isn't known is a failure.
void skip_value(DwarfBytes& in, std::uint64_t form, const DwarfFormat& format);

}  // namespace dial9::symbolize
