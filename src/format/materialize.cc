// A visitor that keeps everything; pooled strings are resolved when their stream ends, since they
// may be defined late. See materialize.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/materialize.h"

#include <algorithm>

#include "format/value.h"

namespace dial9::format {
namespace {

class Collector final : public Visitor {
 public:
  explicit Collector(MaterializedTrace& trace) : trace_(trace), decoder_(*this) {}

  Decoder& decoder() { return decoder_; }

  void on_stream_start(std::uint64_t /*offset*/) override { resolve_strings(); }
  void on_end() override { resolve_strings(); }

  void on_schema(const Schema& schema) override {
    if (schema.index >= trace_.schemas.size()) {
      trace_.schemas.push_back(schema);
    } else {
      trace_.schemas[schema.index] = schema;
    }
  }

  bool on_event(const Event& event) override {
    OwnedEvent& owned = trace_.events.emplace_back();
    owned.schema = event.schema.index;
    owned.timestamp_ns = event.timestamp_ns;
    owned.offset = event.offset;
    owned.values.reserve(event.values.size());
    for (const Value& value : event.values) {
      owned.values.push_back(own(value));
    }
    return true;
  }

 private:
  OwnedValue own_scalar(const Value& value) const {
    OwnedValue owned;
    owned.type = value.type;
    owned.is_present = value.is_present;
    owned.bits = value.bits;
    if (!value.is_present) {
      return owned;
    }
    if (value.type == FieldType::kString || value.type == FieldType::kBytes) {
      owned.text = value.text();
    } else if (value.type == FieldType::kStackFrames) {
      for (std::size_t i = 0; i < value.frame_count(); ++i) {
        owned.frames.push_back(value.frame(i));
      }
    } else if (value.type == FieldType::kPooledStackFrames) {
      const auto stack = decoder_.stack(static_cast<std::uint32_t>(value.bits));
      owned.frames.assign(stack->begin(), stack->end());  // the decoder refuses undefined ones
    }
    return owned;
  }

  // Recursion is bounded by kMaxNesting.
  OwnedValue own(const Value& value) const {
    return is_container(value.type) ? own_container(value, ElementCursor(value))
                                    : own_scalar(value);
  }

  OwnedValue own_container(const Value& value, ElementCursor cursor) const {
    OwnedValue owned;
    owned.type = value.type;
    owned.is_present = value.is_present;
    while (cursor.next()) {
      if (cursor.is_map()) {
        owned.elements.push_back(own_element(cursor.key(), cursor));
      }
      owned.elements.push_back(own_element(cursor.value(), cursor));
    }
    return owned;
  }

  OwnedValue own_element(const Value& value, const ElementCursor& parent) const {
    return is_container(value.type) ? own_container(value, ElementCursor(value, parent))
                                    : own_scalar(value);
  }

  void resolve(OwnedValue& value) const {
    if (value.type == FieldType::kPooledString && value.is_present) {
      const auto text = decoder_.string(static_cast<std::uint32_t>(value.bits));
      value.is_unresolved = !text;
      value.text = text.value_or(std::string_view{});
    }
    for (OwnedValue& element : value.elements) {
      resolve(element);
    }
  }

  void resolve_strings() {
    for (; resolved_events_ < trace_.events.size(); ++resolved_events_) {
      for (OwnedValue& value : trace_.events[resolved_events_].values) {
        resolve(value);
      }
    }
  }

  MaterializedTrace& trace_;
  Decoder decoder_;
  std::size_t resolved_events_ = 0;
};

}  // namespace

const OwnedValue* MaterializedTrace::field(const OwnedEvent& event, std::string_view name) const {
  const int position = schemas[event.schema].find(name);
  return position < 0 ? nullptr : &event.values[static_cast<std::size_t>(position)];
}

MaterializedTrace materialize(std::span<const std::uint8_t> bytes) {
  return materialize(bytes, std::max<std::size_t>(bytes.size(), 1));
}

MaterializedTrace materialize(std::span<const std::uint8_t> bytes, std::size_t chunk_bytes) {
  MaterializedTrace trace;
  Collector collector(trace);
  bool is_fed = true;
  while (!bytes.empty() && is_fed) {
    const std::size_t step = std::min(chunk_bytes, bytes.size());
    is_fed = collector.decoder().feed(bytes.first(step)).has_value();
    bytes = bytes.subspan(step);
  }
  if (Result<void> outcome = collector.decoder().finish(); !outcome) {
    trace.error = std::move(outcome.error());
  }
  trace.stats = collector.decoder().stats();
  return trace;
}

}  // namespace dial9::format
