// The fuzzer chooses schemas, pools, times and values of every type; what the encoder writes the
// decoder must read back equal. The model is the materialised form itself.
// SPDX-License-Identifier: Apache-2.0
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "check.h"
#include "format/encoder.h"
#include "format/materialize.h"
#include "format/value.h"

namespace dial9::fuzz {
namespace {

using format::FieldType;
using format::OwnedValue;

constexpr std::uint32_t kMaxDepth = format::kMaxNesting;

FieldType choose_type(FuzzedDataProvider& choices) {
  return static_cast<FieldType>(
      choices.ConsumeIntegralInRange<std::uint8_t>(1, format::kLastFieldType));
}

std::vector<std::uint64_t> choose_frames(FuzzedDataProvider& choices) {
  std::vector<std::uint64_t> frames(choices.ConsumeIntegralInRange<std::size_t>(0, 5));
  for (std::uint64_t& frame : frames) {
    frame = choices.ConsumeIntegral<std::uint64_t>();
  }
  return frames;
}

// A scalar's bits, as the decoder shows them.
std::uint64_t choose_bits(FuzzedDataProvider& choices, FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return choices.ConsumeBool() ? 1 : 0;
    case FieldType::kU8:
      return choices.ConsumeIntegral<std::uint8_t>();
    case FieldType::kU16:
      return choices.ConsumeIntegral<std::uint16_t>();
    case FieldType::kU32:
      return choices.ConsumeIntegral<std::uint32_t>();
    default:
      return choices.ConsumeIntegral<std::uint64_t>();
  }
}

// A value of `type` for a place at container level `depth`; pools are filled as it needs them.
OwnedValue choose_value(FuzzedDataProvider& choices, format::Encoder& encoder, FieldType type,
                        std::uint32_t depth) {
  OwnedValue value;
  value.type = type;
  value.is_present = true;
  switch (type) {
    case FieldType::kString:
    case FieldType::kBytes:
      value.text = choices.ConsumeRandomLengthString(40);
      return value;
    case FieldType::kPooledString:
      value.text = choices.ConsumeRandomLengthString(8);
      value.bits = encoder.intern(value.text);
      return value;
    case FieldType::kStackFrames:
      value.frames = choose_frames(choices);
      return value;
    case FieldType::kPooledStackFrames:
      value.frames = choose_frames(choices);
      value.bits = encoder.intern_stack(value.frames);
      return value;
    case FieldType::kStringMap:
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      break;
    default:
      value.bits = choose_bits(choices, type);
      return value;
  }
  std::size_t count = choices.ConsumeIntegralInRange<std::size_t>(0, 3);
  count *= type == FieldType::kDynamicList ? 1 : 2;
  for (std::size_t i = 0; i < count; ++i) {
    FieldType element = FieldType::kString;
    if (type != FieldType::kStringMap) {
      element = choose_type(choices);
      if (depth == kMaxDepth && format::is_container(element)) {
        element = FieldType::kU8;
      }
    }
    value.elements.push_back(choose_value(choices, encoder, element, depth + 1));
  }
  return value;
}

std::span<const std::uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void write_container(format::Encoder& encoder, const OwnedValue& value);

void write_value(format::Encoder& encoder, const OwnedValue& value) {
  switch (value.type) {
    case FieldType::kI64:
      return encoder.i64(static_cast<std::int64_t>(value.bits));
    case FieldType::kF64:
      return encoder.f64(std::bit_cast<double>(value.bits));
    case FieldType::kBool:
      return encoder.boolean(value.bits != 0);
    case FieldType::kString:
      return encoder.string(value.text);
    case FieldType::kBytes:
      return encoder.bytes(as_bytes(value.text));
    case FieldType::kPooledStackFrames:
      return encoder.pooled_stack(value.frames);
    case FieldType::kPooledString:
      return encoder.pool_id(static_cast<std::uint32_t>(value.bits));
    case FieldType::kStackFrames:
      return encoder.stack_frames(value.frames);
    case FieldType::kVarint:
      return encoder.varint(value.bits);
    case FieldType::kU8:
      return encoder.u8(static_cast<std::uint8_t>(value.bits));
    case FieldType::kU16:
      return encoder.u16(static_cast<std::uint16_t>(value.bits));
    case FieldType::kU32:
      return encoder.u32(static_cast<std::uint32_t>(value.bits));
    case FieldType::kStringMap:
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      return write_container(encoder, value);
  }
}

void write_container(format::Encoder& encoder, const OwnedValue& value) {
  const auto count = static_cast<std::uint32_t>(value.elements.size());
  if (value.type == FieldType::kStringMap) {
    std::vector<std::pair<std::string_view, std::string_view>> entries;
    for (std::size_t i = 0; i < value.elements.size(); i += 2) {
      entries.emplace_back(value.elements[i].text, value.elements[i + 1].text);
    }
    return encoder.string_map(entries);
  }
  if (value.type == FieldType::kDynamicList) {
    encoder.list(count);
  } else {
    encoder.map(count / 2);
  }
  for (const OwnedValue& element : value.elements) {
    encoder.element(element.type);
    write_value(encoder, element);
  }
}

// Chooses a trace, writes it, and keeps what must come back.
class Writer {
 public:
  explicit Writer(FuzzedDataProvider& choices) : choices_(choices) {}

  void write() {
    while (choices_.remaining_bytes() > 0 && events.size() < 300) {
      switch (choices_.ConsumeIntegralInRange<int>(0, 9)) {
        case 0:
          add_schema();
          break;
        case 1:
          if (!types_.empty()) {
            annotate();
          }
          break;
        case 2:
          start_stream();
          break;
        default:
          if (!types_.empty()) {
            add_event();
          }
          break;
      }
    }
  }

  format::Encoder encoder;
  std::vector<format::OwnedEvent> events;  // `schema` is the position in schema_of_event
  std::vector<const format::Schema*> schema_of_event;

 private:
  struct Type {
    std::uint16_t id;
    std::shared_ptr<format::Schema> schema;
  };

  void start_stream() {
    encoder.new_stream();
    types_.clear();
  }

  void add_schema() {
    const auto id = choices_.ConsumeIntegral<std::uint16_t>();
    if (std::any_of(types_.begin(), types_.end(), [&](const Type& t) { return t.id == id; })) {
      return;
    }
    auto schema = std::make_shared<format::Schema>();
    schema->name = choices_.ConsumeRandomLengthString(12);
    schema->has_timestamp = choices_.ConsumeBool();
    std::vector<format::FieldSpec> specs;
    const auto count = choices_.ConsumeIntegralInRange<std::size_t>(0, 6);
    schema->fields.reserve(count);  // specs hold views of the names
    for (std::size_t i = 0; i < count; ++i) {
      const FieldType type = choose_type(choices_);
      const bool is_optional = choices_.ConsumeBool();
      schema->fields.push_back({choices_.ConsumeRandomLengthString(5), type, is_optional});
      specs.push_back({schema->fields.back().name, type, is_optional});
    }
    encoder.schema(id, schema->name, schema->has_timestamp, specs);
    types_.push_back({id, schema});
    kept_.push_back(schema);
  }

  void annotate() {
    const Type& type = choose();
    const std::string key = choices_.ConsumeRandomLengthString(5);
    const std::string value = choices_.ConsumeRandomLengthString(5);
    encoder.annotations(type.id, {{choices_.ConsumeIntegral<std::uint16_t>(), key, value}});
  }

  void add_event() {
    const Type& type = choose();
    format::OwnedEvent event;
    for (const format::FieldDef& field : type.schema->fields) {
      if (field.is_optional && choices_.ConsumeBool()) {
        event.values.emplace_back().type = field.type;
      } else {
        event.values.push_back(choose_value(choices_, encoder, field.type, 1));
      }
    }
    if (type.schema->has_timestamp) {
      // Near the last one more often than anywhere.
      time_ns_ = choices_.ConsumeBool() ? time_ns_ + choices_.ConsumeIntegral<std::uint16_t>()
                                        : choices_.ConsumeIntegral<std::uint64_t>();
      event.timestamp_ns = time_ns_;
      encoder.begin(type.id, time_ns_);
    } else {
      encoder.begin_untimed(type.id);
    }
    for (std::size_t i = 0; i < event.values.size(); ++i) {
      if (!event.values[i].is_present) {
        encoder.absent();
        continue;
      }
      if (type.schema->fields[i].is_optional) {
        encoder.present();
      }
      write_value(encoder, event.values[i]);
    }
    events.push_back(std::move(event));
    schema_of_event.push_back(type.schema.get());
  }

  const Type& choose() {
    return types_[choices_.ConsumeIntegralInRange<std::size_t>(0, types_.size() - 1)];
  }

  FuzzedDataProvider& choices_;
  std::vector<Type> types_;                            // of the current stream
  std::vector<std::shared_ptr<format::Schema>> kept_;  // of all
  std::uint64_t time_ns_ = 0;
};

void compare(const Writer& writer, const format::MaterializedTrace& trace) {
  check(!trace.error, "what the encoder writes can be read");
  check(trace.events.size() == writer.events.size(), "every event comes back");
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const format::Schema& expected = *writer.schema_of_event[i];
    const format::Schema& actual = trace.schemas[trace.events[i].schema];
    check(actual.name == expected.name && actual.fields == expected.fields &&
              actual.has_timestamp == expected.has_timestamp,
          "an event comes back under its schema");
    check(trace.events[i].timestamp_ns == writer.events[i].timestamp_ns, "times come back");
    check(trace.events[i].values == writer.events[i].values, "values come back");
  }
}

}  // namespace
}  // namespace dial9::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider choices(data, size);
  const auto chunk_bytes = choices.ConsumeIntegralInRange<std::size_t>(1, 64);
  dial9::fuzz::Writer writer(choices);
  writer.write();
  dial9::fuzz::check(writer.encoder.misuse().empty(), "the encoder takes right calls");
  const std::span<const std::uint8_t> bytes = writer.encoder.data();
  dial9::fuzz::compare(writer, dial9::format::materialize(bytes));
  dial9::fuzz::compare(writer, dial9::format::materialize(bytes, chunk_bytes));
  return 0;
}
