// The calls of the public encoder, each a frame or a value. See encoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/encoder.h"

#include <bit>
#include <string>

#include "format/encoder_state.h"

namespace dial9::format {
namespace {

std::string_view as_key(std::span<const std::uint64_t> frames) {
  return {reinterpret_cast<const char*>(frames.data()), frames.size_bytes()};
}

void put_frames(Buffer& buffer, std::span<const std::uint64_t> frames) {
  put(buffer, static_cast<std::uint32_t>(frames.size()));
  for (const std::uint64_t frame : frames) {
    put(buffer, frame);
  }
}

constexpr bool is_valid(FieldType type) {
  const auto tag = static_cast<std::uint8_t>(type);
  return tag >= 1 && tag <= kLastFieldType;
}

}  // namespace

Encoder::Encoder() : state_(std::make_unique<State>()) { state_->start_stream(); }
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

void Encoder::new_stream() {
  if (state_->event != nullptr) {
    state_->refuse("new_stream() inside an event");
  }
  state_->start_stream();
}

void Encoder::schema(std::uint16_t type_id, std::string_view name, bool has_timestamp,
                     std::span<const FieldSpec> fields) {
  State::Type type{has_timestamp, {}, {}};
  if (name.size() > kMaxShort || fields.size() > kMaxShort) {
    return state_->refuse("a schema's name or field count over 65,535");
  }
  put_tag(type.frame, FrameTag::kSchema);
  put(type.frame, type_id);
  put_text<std::uint16_t>(type.frame, name);
  put(type.frame, static_cast<std::uint8_t>(has_timestamp));
  put(type.frame, static_cast<std::uint16_t>(fields.size()));
  for (const FieldSpec& field : fields) {
    if (field.name.size() > kMaxShort) {
      return state_->refuse("a field's name over 65,535 bytes");
    }
    if (!is_valid(field.type)) {
      return state_->refuse("a field of a type that doesn't exist");
    }
    put_text<std::uint16_t>(type.frame, field.name);
    const auto tag = static_cast<std::uint8_t>(field.type);
    type.frame.push_back(field.is_optional ? tag | kOptionalBit : tag);
    type.fields.push_back({field.type, field.is_optional});
  }
  const auto [known, is_new] = state_->types.try_emplace(type_id, std::move(type));
  if (is_new) {
    state_->add_frame(known->second.frame);
  } else if (known->second.frame != type.frame) {
    state_->refuse("a type id that stands for another schema");
  }
}

void Encoder::annotations(std::uint16_t type_id, std::span<const AnnotationSpec> entries) {
  if (!state_->types.contains(type_id)) {
    return state_->refuse("annotations() of a type id without a schema");
  }
  if (entries.size() > kMaxShort) {
    return state_->refuse("more than 65,535 annotations in one call");
  }
  Buffer frame;
  put_tag(frame, FrameTag::kSchemaAnnotations);
  put_varint(frame, type_id);
  put(frame, static_cast<std::uint16_t>(entries.size()));
  for (const AnnotationSpec& entry : entries) {
    if (entry.key.size() > kMaxShort || entry.value.size() > kMaxLong) {
      return state_->refuse("an annotation's key over 65,535 bytes or its value over 4 GiB");
    }
    put(frame, entry.field_index);
    put_text<std::uint16_t>(frame, entry.key);
    put_text<std::uint32_t>(frame, entry.value);
  }
  state_->add_frame(frame);
}

std::uint32_t Encoder::intern(std::string_view text) {
  PoolIds& pool = state_->strings;
  if (const auto known = pool.by_content.find(text); known != pool.by_content.end()) {
    return known->second;
  }
  const std::uint32_t id = pool.free_id();
  define_string(id, text);
  pool.by_content.emplace(text, id);
  return id;
}

std::uint32_t Encoder::intern_stack(std::span<const std::uint64_t> leaf_first) {
  PoolIds& pool = state_->stacks;
  const std::string_view key = as_key(leaf_first);
  if (const auto known = pool.by_content.find(key); known != pool.by_content.end()) {
    return known->second;
  }
  const std::uint32_t id = pool.free_id();
  define_stack(id, leaf_first);
  pool.by_content.emplace(key, id);
  return id;
}

void Encoder::define_string(std::uint32_t id, std::string_view text) {
  if (text.size() > kMaxLong) {
    return state_->refuse("a text over 4 GiB");
  }
  Buffer content;
  put_text<std::uint32_t>(content, text);
  state_->add_pool_entry(state_->strings, id, FrameTag::kStringPool, content);
}

void Encoder::define_stack(std::uint32_t id, std::span<const std::uint64_t> leaf_first) {
  if (leaf_first.size() > kMaxLong) {
    return state_->refuse("a stack over 4 Gi addresses");
  }
  Buffer content;
  put_frames(content, leaf_first);
  state_->add_pool_entry(state_->stacks, id, FrameTag::kStackPool, content);
}

void Encoder::begin(std::uint16_t type_id, std::uint64_t timestamp_ns) {
  state_->start_event(type_id, true, timestamp_ns);
}
void Encoder::begin_untimed(std::uint16_t type_id) { state_->start_event(type_id, false, 0); }

void Encoder::absent() {
  State& state = *state_;
  if (state.event == nullptr || !state.levels.empty() || state.is_announced ||
      !state.event->fields[state.field].is_optional) {
    return state.refuse("absent() where no optional field comes next");
  }
  state.buffer.push_back(0);
  state.end_value();
}

void Encoder::present() {
  State& state = *state_;
  if (state.event == nullptr || !state.levels.empty() || state.is_announced ||
      !state.event->fields[state.field].is_optional) {
    return state.refuse("present() where no optional field comes next");
  }
  state.buffer.push_back(1);
  state.is_announced = true;
}

void Encoder::i64(std::int64_t v) {
  state_->scalar(FieldType::kI64, static_cast<std::uint64_t>(v));
}
void Encoder::f64(double v) { state_->scalar(FieldType::kF64, std::bit_cast<std::uint64_t>(v)); }
void Encoder::boolean(bool v) { state_->scalar(FieldType::kBool, static_cast<std::uint8_t>(v)); }
void Encoder::u8(std::uint8_t v) { state_->scalar(FieldType::kU8, v); }
void Encoder::u16(std::uint16_t v) { state_->scalar(FieldType::kU16, v); }
void Encoder::u32(std::uint32_t v) { state_->scalar(FieldType::kU32, v); }

void Encoder::varint(std::uint64_t v) {
  if (state_->accept(FieldType::kVarint)) {
    put_varint(state_->buffer, v);
    state_->end_value();
  }
}

void Encoder::string(std::string_view v) {
  if (v.size() > kMaxLong) {
    return state_->refuse("a text over 4 GiB");
  }
  if (state_->accept(FieldType::kString)) {
    put_text<std::uint32_t>(state_->buffer, v);
    state_->end_value();
  }
}

void Encoder::bytes(std::span<const std::uint8_t> v) {
  if (v.size() > kMaxLong) {
    return state_->refuse("bytes over 4 GiB");
  }
  if (state_->accept(FieldType::kBytes)) {
    put(state_->buffer, static_cast<std::uint32_t>(v.size()));
    state_->buffer.insert(state_->buffer.end(), v.begin(), v.end());
    state_->end_value();
  }
}

void Encoder::pooled_string(std::string_view v) {
  if (state_->accept(FieldType::kPooledString)) {
    state_->scalar(FieldType::kPooledString, intern(v));
  }
}

void Encoder::pooled_stack(std::span<const std::uint64_t> leaf_first) {
  if (state_->accept(FieldType::kPooledStackFrames)) {
    state_->scalar(FieldType::kPooledStackFrames, intern_stack(leaf_first));
  }
}

void Encoder::pool_id(std::uint32_t id) {
  if (state_->expects(FieldType::kPooledString)) {
    state_->scalar(FieldType::kPooledString, id);
  } else if (state_->accept(FieldType::kPooledStackFrames)) {
    if (!state_->stacks.taken.contains(id)) {
      return state_->refuse("a reference to a stack that isn't defined");
    }
    state_->scalar(FieldType::kPooledStackFrames, id);
  }
}

void Encoder::stack_frames(std::span<const std::uint64_t> leaf_first) {
  if (leaf_first.size() > kMaxLong) {
    return state_->refuse("a stack over 4 Gi addresses");
  }
  if (state_->accept(FieldType::kStackFrames)) {
    put_frames(state_->buffer, leaf_first);
    state_->end_value();
  }
}

void Encoder::string_map(std::span<const std::pair<std::string_view, std::string_view>> entries) {
  State& state = *state_;
  if (!state.accept(FieldType::kStringMap)) {
    return;
  }
  if (state.levels.size() == kMaxNesting) {
    return state.refuse("containers nested deeper than 64 levels");
  }
  if (entries.size() > kMaxLong) {
    return state.refuse("a map over 4 Gi entries");
  }
  put(state.buffer, static_cast<std::uint32_t>(entries.size()));
  for (const auto& [key, value] : entries) {
    if (key.size() > kMaxLong || value.size() > kMaxLong) {
      return state.refuse("a text over 4 GiB");
    }
    put_text<std::uint32_t>(state.buffer, key);
    put_text<std::uint32_t>(state.buffer, value);
  }
  state.end_value();
}

void Encoder::list(std::uint32_t count) {
  state_->open_container(FieldType::kDynamicList, count, count);
}
void Encoder::map(std::uint32_t count) {
  state_->open_container(FieldType::kDynamicMap, count, std::uint64_t{count} * 2);
}

void Encoder::element(FieldType type) {
  State& state = *state_;
  if (state.event == nullptr || state.levels.empty() || state.element_type != FieldType{}) {
    return state.refuse("element() where no element of a list or map comes next");
  }
  if (!is_valid(type)) {
    return state.refuse("an element of a type that doesn't exist");
  }
  --state.levels.back();
  state.element_type = type;
  state.buffer.push_back(static_cast<std::uint8_t>(type));
}

std::span<const std::uint8_t> Encoder::data() const {
  return std::span(state_->buffer).first(state_->complete);
}

std::vector<std::uint8_t> Encoder::take() {
  state_->drop_event();
  std::vector<std::uint8_t> taken = std::move(state_->buffer);
  state_->buffer = {};
  state_->misuse = "";
  state_->start_stream();
  return taken;
}

std::string_view Encoder::misuse() const { return state_->misuse; }

}  // namespace dial9::format
