// The encoder's machine: the buffer, what was registered in the stream, and which value may come
// next in the event that is being written. A misuse drops that event, so the whole frames in the
// buffer are always a valid stream.
// Internal to format/. Spec: docs/spec/trace_format.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/varint.h"
#include "format/encoder.h"

namespace dial9::format {

using Buffer = std::vector<std::uint8_t>;

inline constexpr std::size_t kMaxShort = std::numeric_limits<std::uint16_t>::max();
inline constexpr std::size_t kMaxLong = std::numeric_limits<std::uint32_t>::max();

template <std::unsigned_integral T>
void put(Buffer& buffer, T value) {
  std::uint8_t bytes[sizeof value];
  store_le(bytes, value);
  buffer.insert(buffer.end(), bytes, bytes + sizeof value);
}

inline void put_tag(Buffer& buffer, FrameTag tag) {
  buffer.push_back(static_cast<std::uint8_t>(tag));
}

inline void put_varint(Buffer& buffer, std::uint64_t value) {
  std::uint8_t bytes[kMaxVarintBytes];
  buffer.insert(buffer.end(), bytes, bytes + encode_varint(value, bytes));
}

// A length of type `Length` and the text.
template <std::unsigned_integral Length>
void put_text(Buffer& buffer, std::string_view text) {
  put(buffer, static_cast<Length>(text.size()));
  buffer.insert(buffer.end(), text.begin(), text.end());
}

// The ids of one pool of the current stream.
struct PoolIds {
  std::map<std::string, std::uint32_t, std::less<>> by_content;
  std::set<std::uint32_t> taken;
  std::uint32_t next = 0;

  std::uint32_t free_id() {
    while (taken.contains(next)) {
      ++next;
    }
    return next;
  }
};

struct Encoder::State {
  struct Field {
    FieldType type;
    bool is_optional;
  };
  struct Type {
    bool has_timestamp = false;
    std::vector<Field> fields;
    Buffer frame;  // as written
  };

  Buffer buffer;
  std::size_t complete = 0;  // bytes of whole frames; behind them the event that is being written
  std::uint64_t base_ns = 0;
  std::map<std::uint16_t, Type> types;
  PoolIds strings;
  PoolIds stacks;
  const char* misuse = "";

  // The event that is being written; nullptr: none.
  const Type* event = nullptr;
  std::uint64_t base_before_ns = 0;
  std::size_t field = 0;      // that comes next, or whose containers are open
  bool is_announced = false;  // present() was called for it
  // Values that the open containers still lack, outermost first.
  std::vector<std::uint64_t> levels;
  FieldType element_type{};  // of the element that comes next; 0: element() has to come first

  void start_stream();
  void refuse(const char* why);
  void drop_event();
  void add_frame(const Buffer& frame);
  void add_pool_entry(PoolIds& pool, std::uint32_t id, FrameTag tag, const Buffer& content);
  void start_event(std::uint16_t type_id, bool has_timestamp, std::uint64_t timestamp_ns);
  bool expects(FieldType type) const;
  bool accept(FieldType type);
  void end_value();
  void end_field();
  void open_container(FieldType type, std::uint32_t count, std::uint64_t values);

  template <std::unsigned_integral T>
  void scalar(FieldType type, T value) {
    if (accept(type)) {
      put(buffer, value);
      end_value();
    }
  }
};

}  // namespace dial9::format
