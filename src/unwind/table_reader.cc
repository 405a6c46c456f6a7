// See table_reader.h: the two parts that aren't worth inlining.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_reader.h"

#include <algorithm>

namespace dial9::unwind {

bool TableReader::fill() {
  if (!ok()) {
    return false;
  }
  if (position_ >= end_) {
    fail(TableError::kCorrupt);
    return false;
  }
  const std::uint64_t wanted = std::min<std::uint64_t>(window_.size(), end_ - position_);
  window_size_ = 0;
  source_.budget_bytes -= static_cast<std::int64_t>(wanted);
  if (source_.is_exhausted()) {
    fail(TableError::kBudget);
    return false;
  }
  window_size_ = source_.copy(source_.self, position_, window_.data(), wanted);
  window_begin_ = position_;
  if (window_size_ == 0) {
    fail(TableError::kUnreadable);
    return false;
  }
  return true;
}

std::uint64_t TableReader::pointer(std::uint8_t encoding, std::uint64_t data_base) {
  if (encoding == kEncodingOmitted) {
    return 0;
  }
  const std::uint64_t place = position_;
  std::uint64_t value = 0;
  switch (encoding & 0x0f) {
    case 0x00: value = fixed<std::uint64_t>(); break;
    case 0x01: value = uleb(); break;
    case 0x02: value = fixed<std::uint16_t>(); break;
    case 0x03: value = fixed<std::uint32_t>(); break;
    case 0x04: value = fixed<std::uint64_t>(); break;
    case 0x09: value = static_cast<std::uint64_t>(sleb()); break;
    case 0x0a: value = static_cast<std::uint64_t>(std::int64_t{fixed<std::int16_t>()}); break;
    case 0x0b: value = static_cast<std::uint64_t>(std::int64_t{fixed<std::int32_t>()}); break;
    case 0x0c: value = fixed<std::uint64_t>(); break;
    default: fail(TableError::kUnsupported); return 0;
  }
  switch (encoding & 0xf0) {
    case 0x00: return value;
    case 0x10: return value + place;
    case 0x30: return value + data_base;
    default: fail(TableError::kUnsupported); return 0;
  }
}

}  // namespace dial9::unwind
