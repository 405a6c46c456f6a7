// See frame_bytes.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_bytes.h"

#include "base/bytes.h"
#include "base/cut_text.h"

namespace dial9::symbolize {

std::string bounded_text(std::string_view text) {
  if (text.size() <= kMostTextBytes) return std::string(text);
  return cut_text(text, kMostTextBytes - kCutTailBytes);
}

void ByteWriter::u32(std::uint32_t value) {
  bytes_.resize(bytes_.size() + sizeof value);
  store_le(bytes_.data() + bytes_.size() - sizeof value, value);
}

void ByteWriter::u64(std::uint64_t value) {
  bytes_.resize(bytes_.size() + sizeof value);
  store_le(bytes_.data() + bytes_.size() - sizeof value, value);
}

void ByteWriter::text(std::string_view text) {
  if (text.size() > kMostTextBytes) return this->text(bounded_text(text));
  u32(static_cast<std::uint32_t>(text.size()));
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

bool ByteReader::has(std::size_t size) {
  is_whole_ = is_whole_ && bytes_.size() - at_ >= size;
  return is_whole_;
}

std::uint32_t ByteReader::u32() {
  if (!has(sizeof(std::uint32_t))) return 0;
  at_ += sizeof(std::uint32_t);
  return load_le<std::uint32_t>(bytes_.data() + at_ - sizeof(std::uint32_t));
}

std::uint64_t ByteReader::u64() {
  if (!has(sizeof(std::uint64_t))) return 0;
  at_ += sizeof(std::uint64_t);
  return load_le<std::uint64_t>(bytes_.data() + at_ - sizeof(std::uint64_t));
}

std::string ByteReader::text() {
  const std::size_t size = u32();
  is_whole_ = is_whole_ && size <= kMostTextBytes;
  if (!has(size)) return {};
  const auto* const begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
  at_ += size;
  return std::string(begin, size);
}

}  // namespace dial9::symbolize
