// The transitions of the encoder's machine. See encoder_state.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/encoder_state.h"

#include <iterator>

namespace dial9::format {

void Encoder::State::start_stream() {
  buffer.insert(buffer.end(), std::begin(kMagic), std::end(kMagic));
  buffer.push_back(kVersion);
  complete = buffer.size();
  base_ns = 0;
  types.clear();
  strings = {};
  stacks = {};
}

void Encoder::State::refuse(const char* why) {
  if (*misuse == '\0') {
    misuse = why;
  }
  drop_event();
}

void Encoder::State::drop_event() {
  if (event != nullptr) {
    buffer.resize(complete);
    base_ns = base_before_ns;
    event = nullptr;
  }
}

// Adds a whole frame, in front of the event that is being written if there is one.
void Encoder::State::add_frame(const Buffer& frame) {
  buffer.insert(buffer.begin() + static_cast<std::ptrdiff_t>(complete), frame.begin(), frame.end());
  complete += frame.size();
}

// `content`: the entry from its length on.
void Encoder::State::add_pool_entry(PoolIds& pool, std::uint32_t id, FrameTag tag,
                                    const Buffer& content) {
  if (!pool.taken.insert(id).second) {
    return refuse("a pool id that is taken");
  }
  Buffer frame;
  frame.reserve(1 + 2 * sizeof id + content.size());
  put_tag(frame, tag);
  put(frame, std::uint32_t{1});
  put(frame, id);
  frame.insert(frame.end(), content.begin(), content.end());
  add_frame(frame);
}

void Encoder::State::start_event(std::uint16_t type_id, bool has_timestamp,
                                 std::uint64_t timestamp_ns) {
  if (event != nullptr) {
    refuse("begin() before the event before had all its fields");
  }
  const auto type = types.find(type_id);
  if (type == types.end()) {
    return refuse("begin() of a type id without a schema");
  }
  if (type->second.has_timestamp != has_timestamp) {
    return refuse("begin() is for types with a timestamp, begin_untimed() for those without");
  }
  event = &type->second;
  base_before_ns = base_ns;
  field = 0;
  is_announced = false;
  levels.clear();
  element_type = {};
  if (has_timestamp && (timestamp_ns < base_ns || timestamp_ns - base_ns > kMaxDeltaNs)) {
    put_tag(buffer, FrameTag::kTimestampReset);
    put(buffer, timestamp_ns);
    base_ns = timestamp_ns;
  }
  put_tag(buffer, FrameTag::kEvent);
  put(buffer, type_id);
  if (has_timestamp) {
    const auto delta_ns = static_cast<std::uint32_t>(timestamp_ns - base_ns);
    put(buffer, static_cast<std::uint16_t>(delta_ns));
    put(buffer, static_cast<std::uint8_t>(delta_ns >> 16));
    base_ns = timestamp_ns;
  }
  end_field();
}

// Whether a value of `type` is what comes next.
bool Encoder::State::expects(FieldType type) const {
  if (event == nullptr) {
    return false;
  }
  if (!levels.empty()) {
    return element_type == type;
  }
  const Field& next = event->fields[field];
  return next.type == type && (!next.is_optional || is_announced);
}

// Whether a value of `type` may be written now. The caller then writes it and calls end_value().
bool Encoder::State::accept(FieldType type) {
  if (!expects(type)) {
    refuse(event == nullptr ? "a value outside an event"
                            : "a value of another type than the one that comes next (of an "
                              "optional field: present() comes before)");
    return false;
  }
  return true;
}

// A value is whole, and with it perhaps the containers around it and the field.
void Encoder::State::end_value() {
  element_type = {};
  while (!levels.empty()) {
    if (levels.back() > 0) {
      return;
    }
    levels.pop_back();
  }
  ++field;
  end_field();
}

// Goes to the next field; where there is none, the event is whole.
void Encoder::State::end_field() {
  is_announced = false;
  if (field == event->fields.size()) {
    event = nullptr;
    complete = buffer.size();
  }
}

void Encoder::State::open_container(FieldType type, std::uint32_t count, std::uint64_t values) {
  if (!accept(type)) {
    return;
  }
  if (levels.size() == kMaxNesting) {
    return refuse("containers nested deeper than 64 levels");
  }
  put(buffer, count);
  levels.push_back(values);
  element_type = {};
  if (values == 0) {
    end_value();
  }
}

}  // namespace dial9::format
