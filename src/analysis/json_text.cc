// UTF-8 is checked by the table of the Unicode standard (3-7): overlong forms, surrogates and
// values over U+10FFFF are not valid.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "format/value.h"

namespace dial9::analysis {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kHexDigits = "0123456789abcdef";

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

bool is_continuation(unsigned byte) { return (byte & 0xC0) == 0x80; }

// Length of the valid sequence at `i`, 0 if there is none.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const unsigned b0 = byte_at(text, i);
  const unsigned b1 = byte_at(text, i + 1);
  if (b0 < 0x80) {
    return 1;
  }
  if (b0 >= 0xC2 && b0 <= 0xDF) {
    return is_continuation(b1) ? 2 : 0;
  }
  if (b0 >= 0xE0 && b0 <= 0xEF) {
    const unsigned low = b0 == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = b0 == 0xED ? 0x9F : 0xBF;
    return b1 >= low && b1 <= high && is_continuation(byte_at(text, i + 2)) ? 3 : 0;
  }
  if (b0 >= 0xF0 && b0 <= 0xF4) {
    const unsigned low = b0 == 0xF0 ? 0x90 : 0x80;
    const unsigned high = b0 == 0xF4 ? 0x8F : 0xBF;
    const bool is_valid = b1 >= low && b1 <= high && is_continuation(byte_at(text, i + 2)) &&
                          is_continuation(byte_at(text, i + 3));
    return is_valid ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte == 0x7F) {
    out += "\\u00";
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  } else {
    out += c;
  }
}

template <class T>
void append_chars(std::string& out, T value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), end);
}

void append_address(std::string& out, std::uint64_t address) {
  std::array<char, 24> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), address, 16).ptr;
  out += "\"0x";
  out.append(text.data(), end);
  out += '"';
}

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  out += '"';
  for (const std::uint8_t byte : bytes) {
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  out += '"';
}

class ValueWriter {
 public:
  ValueWriter(std::string& out, const format::Decoder& decoder, std::size_t max_bytes,
              bool is_key = false)
      : out_(out), decoder_(decoder), max_bytes_(max_bytes), is_key_(is_key) {}

  void write(const format::Value& value, const format::ElementCursor* parent) {
    using format::FieldType;
    if (!value.is_present) {
      out_ += "null";
      return;
    }
    switch (value.type) {
      case FieldType::kI64:
        append_json_number(out_, value.i64());
        return;
      case FieldType::kF64:
        append_json_number(out_, value.f64());
        return;
      case FieldType::kBool:
        out_ += value.bits != 0 ? "true" : "false";
        return;
      case FieldType::kString:
        append_json_string(out_, value.text());
        return;
      case FieldType::kBytes:
        append_hex(out_, value.bytes);
        return;
      case FieldType::kPooledString:
        write_pooled(static_cast<std::uint32_t>(value.bits));
        return;
      case FieldType::kPooledStackFrames:
        write_stack(static_cast<std::uint32_t>(value.bits));
        return;
      case FieldType::kStackFrames:
        write_frames(value);
        return;
      case FieldType::kVarint:
      case FieldType::kU8:
      case FieldType::kU16:
      case FieldType::kU32:
        append_json_number(out_, value.bits);
        return;
      case FieldType::kStringMap:
      case FieldType::kDynamicList:
      case FieldType::kDynamicMap:
        write_container(value, parent);
        return;
    }
  }

 private:
  void write_pooled(std::uint32_t id) {
    const auto text = decoder_.string(id);
    if (!text) {
      out_ += "null";
    } else if (has_room(text->size())) {
      append_json_string(out_, *text);
    }
  }

  void write_stack(std::uint32_t id) {
    const auto stack = decoder_.stack(id);
    if (!stack) {
      out_ += "null";
      return;
    }
    constexpr std::size_t kAddressBytes = 21;  // with quotes and comma, at most
    if (!has_room(stack->size() * kAddressBytes)) {
      return;
    }
    out_ += '[';
    for (std::size_t i = 0; i < stack->size(); ++i) {
      out_ += i == 0 ? "" : ",";
      append_address(out_, (*stack)[i]);
    }
    out_ += ']';
  }

  // Whether what a pool reference stands for still fits; says so in its place if not.
  bool has_room(std::size_t bytes) {
    if (out_.size() + bytes <= max_bytes_) {
      return true;
    }
    out_ += "\"(left out: too long)\"";
    return false;
  }

  void write_frames(const format::Value& value) {
    out_ += '[';
    for (std::size_t i = 0; i < value.frame_count(); ++i) {
      out_ += i == 0 ? "" : ",";
      append_address(out_, value.frame(i));
    }
    out_ += ']';
  }

  // A map's key, as JSON wants it: a string. JSON inside JSON inside JSON would double its escapes
  // at each level, so a key within a key is not written as JSON again.
  void write_key(const format::Value& key, const format::ElementCursor& cursor) {
    if (is_key_ && format::is_container(key.type)) {
      append_hex(out_, key.bytes);
      return;
    }
    std::string text;
    ValueWriter(text, decoder_, max_bytes_ - std::min(max_bytes_, out_.size()), true)
        .write(key, &cursor);
    if (!text.empty() && text.front() == '"') {
      out_ += text;
    } else {
      append_json_string(out_, text);
    }
  }

  // The decoder bounds the nesting at 64 levels, and with it this recursion.
  void write_container(const format::Value& value, const format::ElementCursor* parent) {
    format::ElementCursor cursor =
        parent == nullptr ? format::ElementCursor(value) : format::ElementCursor(value, *parent);
    const bool is_map = cursor.is_map();
    out_ += is_map ? '{' : '[';
    bool is_first = true;
    while (cursor.next()) {
      out_ += is_first ? "" : ",";
      is_first = false;
      if (is_map) {
        write_key(cursor.key(), cursor);
        out_ += ':';
      }
      write(cursor.value(), &cursor);
    }
    out_ += is_map ? '}' : ']';
  }

  std::string& out_;
  const format::Decoder& decoder_;
  const std::size_t max_bytes_;
  const bool is_key_;  // what is written becomes a text in JSON
};

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    if (length == 1) {
      append_escaped(out, text[i]);
    } else if (length == 0) {
      out += kReplacement;
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

void append_json_number(std::string& out, std::uint64_t value) { append_chars(out, value); }
void append_json_number(std::string& out, std::int64_t value) { append_chars(out, value); }

void append_json_number(std::string& out, double value) {
  if (std::isfinite(value)) {
    append_chars(out, value);
  } else {
    out += "null";
  }
}

void append_json_value(std::string& out, const format::Value& value, const format::Decoder& decoder,
                       std::size_t max_bytes) {
  ValueWriter(out, decoder, max_bytes).write(value, nullptr);
}

std::string to_printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    const unsigned b0 = byte_at(text, i);
    // C0, DEL, and C1 (U+0080 to U+009F), of which U+009B starts commands of terminals.
    const bool is_control = (length == 1 && (b0 < 0x20 || b0 == 0x7F)) ||
                            (length == 2 && b0 == 0xC2 && byte_at(text, i + 1) < 0xA0);
    out += length == 0 || is_control ? kReplacement : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    out += length == 0 ? kReplacement : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace dial9::analysis
