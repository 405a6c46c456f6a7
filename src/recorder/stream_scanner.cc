// See stream_scanner.h. Knows only what thread buffers write: no lists, no maps.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/stream_scanner.h"

#include "base/bytes.h"
#include "format/wire.h"

namespace dial9::internal {

// Reads forward; after a read beyond the end `is_good` stays false and values are zero.
class StreamScanner::Cursor {
 public:
  explicit Cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool is_good() const { return is_good_; }
  bool is_done() const { return at_ == bytes_.size(); }
  std::size_t at() const { return at_; }

  void skip(std::uint64_t n) {
    if (n > bytes_.size() - at_) is_good_ = false;
    at_ = is_good_ ? at_ + n : bytes_.size();
  }
  template <class T>
  T get() {
    const std::size_t from = at_;
    skip(sizeof(T));
    return is_good_ ? load_le<T>(bytes_.data() + from) : T{0};
  }
  std::uint32_t get_u24() {
    const std::uint32_t low = get<std::uint16_t>();
    return low | std::uint32_t{get<std::uint8_t>()} << 16;
  }
  void skip_varint() {
    while (is_good_ && (get<std::uint8_t>() & 0x80) != 0) {
    }
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool is_good_ = true;
};

bool StreamScanner::scan_schema(Cursor& in) {
  const auto id = in.get<std::uint16_t>();
  in.skip(in.get<std::uint16_t>());
  const bool has_timestamp = in.get<std::uint8_t>() != 0;
  const auto count = in.get<std::uint16_t>();
  std::vector<std::uint8_t> fields;
  for (std::uint16_t i = 0; i < count && in.is_good(); ++i) {
    in.skip(in.get<std::uint16_t>());
    fields.push_back(in.get<std::uint8_t>());
  }
  types_[id] = std::move(fields);
  return in.is_good() && has_timestamp;
}

bool StreamScanner::scan_event(Cursor& in) {
  const auto type = types_.find(in.get<std::uint16_t>());
  base_ns_ += in.get_u24();
  if (type == types_.end()) return false;
  for (const std::uint8_t wire_type : type->second) {
    if ((wire_type & format::kOptionalBit) != 0 && in.get<std::uint8_t>() == 0) continue;
    switch (static_cast<format::FieldType>(wire_type & ~format::kOptionalBit)) {
      case format::FieldType::kBool:
      case format::FieldType::kU8:
        in.skip(1);
        break;
      case format::FieldType::kU16:
        in.skip(2);
        break;
      case format::FieldType::kPooledStackFrames:
      case format::FieldType::kPooledString:
      case format::FieldType::kU32:
        in.skip(4);
        break;
      case format::FieldType::kI64:
      case format::FieldType::kF64:
        in.skip(8);
        break;
      case format::FieldType::kString:
      case format::FieldType::kBytes:
        in.skip(in.get<std::uint32_t>());
        break;
      case format::FieldType::kStackFrames:
        in.skip(std::uint64_t{in.get<std::uint32_t>()} * 8);
        break;
      case format::FieldType::kVarint:
        in.skip_varint();
        break;
      default:
        return false;
    }
  }
  return in.is_good();
}

bool StreamScanner::scan(std::span<const std::uint8_t> frames) {
  Cursor in(frames);
  while (!in.is_done()) {
    const std::size_t start = in.at();
    bool is_definition = true;
    switch (static_cast<format::FrameTag>(in.get<std::uint8_t>())) {
      case format::FrameTag::kSchema:
        if (!scan_schema(in)) return false;
        break;
      case format::FrameTag::kStringPool:  // thread buffers define one entry a frame
        if (in.get<std::uint32_t>() != 1) return false;
        in.skip(4);
        in.skip(in.get<std::uint32_t>());
        break;
      case format::FrameTag::kStackPool:
        if (in.get<std::uint32_t>() != 1) return false;
        in.skip(4);
        in.skip(std::uint64_t{in.get<std::uint32_t>()} * 8);
        is_definition = false;  // used by the event behind it only
        break;
      case format::FrameTag::kSchemaAnnotations: {
        in.skip_varint();
        const auto count = in.get<std::uint16_t>();
        for (std::uint16_t i = 0; i < count && in.is_good(); ++i) {
          in.skip(2);
          in.skip(in.get<std::uint16_t>());
          in.skip(in.get<std::uint32_t>());
        }
        break;
      }
      case format::FrameTag::kTimestampReset:
        base_ns_ = in.get<std::uint64_t>();
        is_definition = false;
        break;
      case format::FrameTag::kEvent:
        if (!scan_event(in)) return false;
        ++events_;
        is_definition = false;
        break;
      default:
        return false;
    }
    if (!in.is_good()) return false;
    if (is_definition) {
      definitions_.insert(definitions_.end(), frames.begin() + static_cast<std::ptrdiff_t>(start),
                          frames.begin() + static_cast<std::ptrdiff_t>(in.at()));
    }
  }
  return true;
}

std::vector<std::uint8_t> StreamScanner::continuation() const {
  std::vector<std::uint8_t> out(format::kMagic, format::kMagic + sizeof format::kMagic);
  out.push_back(format::kVersion);
  out.insert(out.end(), definitions_.begin(), definitions_.end());
  out.push_back(static_cast<std::uint8_t>(format::FrameTag::kTimestampReset));
  const std::size_t at = out.size();
  out.resize(at + 8);
  store_le(out.data() + at, base_ns_);
  return out;
}

}  // namespace dial9::internal
