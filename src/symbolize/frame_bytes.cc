// See frame_bytes.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_bytes.h"

#include <algorithm>

#include "base/bytes.h"

namespace dial9::symbolize {

void ByteWriter::u32(std::uint32_t value) {
  bytes_.resize(bytes_.size() + sizeof value);
  store_le(bytes_.data() + bytes_.size() - sizeof value, value);
}

void ByteWriter::u64(std::uint64_t value) {
  bytes_.resize(bytes_.size() + sizeof value);
  store_le(bytes_.data() + bytes_.size() - sizeof value, value);
}

void ByteWriter::text(std::string_view text) {
  text = text.substr(0, kMostTextBytes);
  u32(static_cast<std::uint32_t>(text.size()));
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

void ByteWriter::frames(const std::vector<Frame>& frames) {
  const std::size_t count = std::min(frames.size(), kMostFramesOfAddress);
  u32(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Frame& frame = frames[i];
    text(frame.name);
    text(frame.file);
    u32(frame.line);
    text(frame.at_file);
    u32(frame.at_line);
    u32(frame.is_inlined ? 1 : 0);
  }
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

std::vector<Frame> ByteReader::frames() {
  const std::size_t count = u32();
  is_whole_ = is_whole_ && count <= kMostFramesOfAddress;
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < count && is_whole_; ++i) {
    Frame& frame = frames.emplace_back();
    frame.name = text();
    frame.file = text();
    frame.line = u32();
    frame.at_file = text();
    frame.at_line = u32();
    frame.is_inlined = u32() != 0;
  }
  if (!is_whole_) frames.clear();
  return frames;
}

}  // namespace dial9::symbolize
