// Numbers and texts as bytes, of which answers of the process that reads debug information and the
// cache on disk consist. Strongest property: reading takes no more than is there, whatever the
// bytes say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dial9::symbolize {

using Bytes = std::vector<std::uint8_t>;

// Longer texts are cut, and bear a hash of the whole, so that two functions stay two.
inline constexpr std::size_t kMostTextBytes = 16 << 10;
std::string bounded_text(std::string_view text);
inline constexpr std::size_t kMostFramesOfAddress = 64;

class ByteWriter {
 public:
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void text(std::string_view text);

  void append(const Bytes& bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// After the first thing that isn't there or breaks a bound, everything is empty and is_whole()
// false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint32_t u32();
  std::uint64_t u64();
  std::string text();
  void fail() { is_whole_ = false; }  // what was read makes no sense

  std::span<const std::uint8_t> rest() const { return bytes_.subspan(at_); }
  bool is_whole() const { return is_whole_; }
  bool is_at_end() const { return at_ == bytes_.size(); }

 private:
  bool has(std::size_t size);

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool is_whole_ = true;
};

}  // namespace dial9::symbolize
