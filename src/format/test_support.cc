// See test_support.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/test_support.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "format/encoder.h"
#include "format/value.h"

namespace dial9::format::test {

Bytes hex(std::string_view text) {
  const auto digit = [](char c) {
    return static_cast<std::uint8_t>(c <= '9' ? c - '0' : std::tolower(c) - 'a' + 10);
  };
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') {
      for (++i; text[i] != '\''; ++i) {
        bytes.push_back(static_cast<std::uint8_t>(text[i]));
      }
    } else if (std::isxdigit(static_cast<unsigned char>(text[i])) != 0) {
      bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
      ++i;
    }
  }
  return bytes;
}

Bytes join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

namespace {

std::string show_bytes(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    if (byte >= 0x20 && byte < 0x7f) {
      text.push_back(static_cast<char>(byte));
    } else {
      text += "\\" + std::to_string(byte);
    }
  }
  return text;
}

std::string show_container(const Value& value, ElementCursor cursor) {
  const auto show_element = [&](const Value& element) {
    return is_container(element.type) ? show_container(element, ElementCursor(element, cursor))
                                      : show(element);
  };
  std::string text = std::to_string(static_cast<int>(value.type)) + "{";
  while (cursor.next()) {
    if (cursor.is_map()) {
      text += show_element(cursor.key()) + "=";
    }
    text += show_element(cursor.value()) + ",";
  }
  return text + (cursor.is_ok() ? "}" : "BROKEN}");
}

}  // namespace

std::string show(const Value& value) {
  const std::string type = std::to_string(static_cast<int>(value.type)) + ":";
  if (!value.is_present) {
    return type + "absent" + (value.bits == 0 && value.bytes.empty() ? "" : " BUT SET");
  }
  if (is_container(value.type)) {
    return show_container(value, ElementCursor(value));
  }
  if (value.type == FieldType::kString || value.type == FieldType::kBytes) {
    return type + "'" + show_bytes(value.bytes) + "'";
  }
  if (value.type == FieldType::kStackFrames) {
    std::string text = type + "[";
    for (std::size_t i = 0; i < value.frame_count(); ++i) {
      text += std::to_string(value.frame(i)) + ",";
    }
    return text + "]";
  }
  return type + std::to_string(value.bits);
}

void Recorder::on_stream_start(std::uint64_t offset) {
  lines.push_back("stream @" + std::to_string(offset));
}

void Recorder::on_schema(const Schema& schema) {
  std::string line = "schema " + std::to_string(schema.index) + " " + schema.name +
                     (schema.has_timestamp ? " timed" : " untimed");
  for (const FieldDef& field : schema.fields) {
    line += " " + field.name + ":" + std::to_string(static_cast<int>(field.type)) +
            (field.is_optional ? "?" : "");
  }
  for (const Annotation& annotation : schema.annotations) {
    line += " #" + std::to_string(annotation.field_index) + "." + annotation.key + "=" +
            annotation.value;
  }
  lines.push_back(line);
}

bool Recorder::on_event(const Event& event) {
  std::string line = event.schema.name + " t=" + std::to_string(event.timestamp_ns) + " @" +
                     std::to_string(event.offset);
  for (const Value& value : event.values) {
    line += " " + show(value);
  }
  lines.push_back(line);
  return ++events_ < max_events;
}

void Recorder::on_string(std::uint32_t id, std::string_view text) {
  lines.push_back("string " + std::to_string(id) + " '" +
                  show_bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}) +
                  "'");
}

void Recorder::on_stack(std::uint32_t id, std::span<const std::uint64_t> leaf_first) {
  std::string line = "stack " + std::to_string(id);
  for (const std::uint64_t frame : leaf_first) {
    line += " " + std::to_string(frame);
  }
  lines.push_back(line);
}

void Recorder::on_end() { lines.emplace_back("end"); }

namespace {

constexpr std::uint64_t kFrames[] = {0x401000, 0x7fffffffffff, 1};
constexpr std::uint8_t kBlob[] = {0x00, 0xff, 0x80};

// One value of `type`, varied by `seed`.
void put_value(Encoder& out, FieldType type, std::uint64_t seed) {
  switch (type) {
    case FieldType::kI64:
      return out.i64(-static_cast<std::int64_t>(seed));
    case FieldType::kF64:
      return out.f64(static_cast<double>(seed) / 4);
    case FieldType::kBool:
      return out.boolean(seed % 2 == 1);
    case FieldType::kString:
      return out.string("text");
    case FieldType::kBytes:
      return out.bytes(kBlob);
    case FieldType::kPooledStackFrames:
      return out.pooled_stack(std::span(kFrames).first(seed % 3));
    case FieldType::kPooledString:
      return out.pooled_string(seed % 2 == 1 ? "odd" : "even");
    case FieldType::kStackFrames:
      return out.stack_frames(kFrames);
    case FieldType::kVarint:
      return out.varint(std::numeric_limits<std::uint64_t>::max() >> (seed % 64));
    case FieldType::kStringMap:
      return out.string_map({{"service", "checkout"}, {"", ""}});
    case FieldType::kU8:
      return out.u8(static_cast<std::uint8_t>(seed));
    case FieldType::kU16:
      return out.u16(static_cast<std::uint16_t>(seed * 257));
    case FieldType::kU32:
      return out.u32(static_cast<std::uint32_t>(seed * 16843009));
    case FieldType::kDynamicList:
      out.list(2);
      out.element(FieldType::kU8);
      out.u8(7);
      out.element(FieldType::kDynamicList);
      return out.list(0);
    case FieldType::kDynamicMap:
      out.map(1);
      out.element(FieldType::kString);
      out.string("key");
      out.element(FieldType::kDynamicMap);
      return out.map(0);
  }
}

constexpr FieldType type_number(int number) { return static_cast<FieldType>(number); }

void put_events(Encoder& out) {
  std::vector<FieldSpec> plain;
  std::vector<FieldSpec> optional;
  for (int type = 1; type <= kLastFieldType; ++type) {
    plain.push_back({"plain", type_number(type)});
    optional.push_back({"optional", type_number(type), true});
  }
  out.schema(1, "Plain", true, plain);
  out.schema(2, "Optional", true, optional);
  out.schema(300, "Nested", false,
             {{"list", FieldType::kDynamicList}, {"map", FieldType::kDynamicMap}});
  out.annotations(1, {{0, "unit", "ns"}, {8, "kind", "counter"}});
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    out.begin(1, seed * 20'000'000);
    for (int type = 1; type <= kLastFieldType; ++type) {
      put_value(out, type_number(type), seed);
    }
    out.begin(2, seed * 20'000'000 + seed % 2);
    for (int type = 1; type <= kLastFieldType; ++type) {
      if ((static_cast<std::uint64_t>(type) + seed) % 2 == 0) {
        out.absent();
      } else {
        out.present();
        put_value(out, type_number(type), seed);
      }
    }
  }
  out.begin_untimed(300);
  out.list(kLastFieldType);
  for (int type = 1; type <= kLastFieldType; ++type) {
    out.element(type_number(type));
    put_value(out, type_number(type), 5);
  }
  out.map(kLastFieldType);
  for (int type = 1; type <= kLastFieldType; ++type) {
    out.element(type_number(type));
    put_value(out, type_number(type), 6);
    out.element(type_number(kLastFieldType + 1 - type));
    put_value(out, type_number(kLastFieldType + 1 - type), 7);
  }
  out.begin(1, 5);  // back in time: a reset
  for (int type = 1; type <= kLastFieldType; ++type) {
    put_value(out, type_number(type), 4);
  }
}

}  // namespace

Bytes every_kind() {
  Encoder out;
  put_events(out);
  out.new_stream();
  out.define_string(70'000, "far away");
  out.define_stack(0xffffffff, kFrames);
  put_events(out);
  return out.misuse().empty() ? out.take() : Bytes{};
}

Outcome decode(const Bytes& bytes, std::size_t chunk_bytes) {
  Recorder recorder;
  Decoder decoder(recorder);
  Result<void> result;
  const std::size_t step = chunk_bytes == 0 ? bytes.size() : chunk_bytes;
  for (std::size_t at = 0; at < bytes.size() && result; at += step) {
    result = decoder.feed(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
  }
  result = decoder.finish();
  Outcome outcome{std::move(recorder.lines), decoder.stats(), {}, 0, {}};
  if (!result) {
    outcome.code = result.error().code;
    outcome.offset = result.error().offset;
    outcome.message = result.error().message;
  }
  return outcome;
}

}  // namespace dial9::format::test
