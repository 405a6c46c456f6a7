// Handlers for spans, in the three dialects of pairs and for spans in one event. All become RawSpan
// records; build_spans.cc joins them. Spec: docs/spec/events.md, "Spans".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "analysis/annotations.h"
#include "analysis/loader_impl.h"
#include "format/value.h"

namespace dial9::analysis {

using format::Event;
using format::FieldType;
using format::Schema;

namespace {

// Positions in Plan::field.
enum SpanField : std::uint8_t {
  kId,
  kOtherId,
  kParent,
  kName,
  kWorker,
  kActive,
  kIdle,
  kPollCount,
  kCompleted,
  kStart,
};
constexpr std::array<std::string_view, 10> kSpanFields = {
    "span_id",   "span_instance_id", "parent_span_id", "span_name", "worker_id",
    "active_ns", "idle_ns",          "poll_count",     "completed", "start_timestamp_ns"};
// Read by no position above, yet not the user's.
constexpr std::string_view kFirstEnter = "first_enter_timestamp_ns";
// Of kWhole: positions.
enum WholeField : std::uint8_t {
  kWholeStart,
  kWholeDuration,
  kWholeName,
  kWholeWorker,
  kWholeTask
};

// The name in a schema's name: "SpanEnter__T" is T, "SpanEnter:target::name:file:line" is "name".
std::string_view name_in(std::string_view rest) {
  if (rest.starts_with("__")) {
    return rest.substr(2);
  }
  return rest.starts_with(":") ? rest.substr(1) : rest;
}

std::uint64_t unit_of(const AnnotationsByField& annotations, std::size_t field) {
  const auto unit = annotations.unit(field);
  if (unit == "us") {
    return 1'000;
  }
  if (unit == "ms") {
    return 1'000'000;
  }
  return unit == "s" ? 1'000'000'000 : 1;
}

std::uint64_t times(std::uint64_t value, std::uint64_t unit) {
  return value > ~std::uint64_t{0} / unit ? ~std::uint64_t{0} : value * unit;
}

}  // namespace

bool Loader::Impl::plan_span(Plan& plan, const Schema& schema) {
  const std::string_view name = schema.name;
  std::string_view rest;
  if (name.starts_with("SpanEnter:") || name.starts_with("SpanEnter__")) {
    plan.handler = &Impl::on_span_enter;
    rest = name.substr(9);
  } else if (name.starts_with("SpanExit:") || name.starts_with("SpanExit__")) {
    plan.handler = &Impl::on_span_exit;
    rest = name.substr(8);
  } else if (name.starts_with("SpanClose__") || name == "SpanCloseEvent") {
    plan.handler = &Impl::on_span_close;
    rest = name == "SpanCloseEvent" ? std::string_view{} : name.substr(9);
  } else {
    return false;
  }
  resolve(plan, schema, kSpanFields);
  if (plan.field[kId] < 0 && plan.field[kOtherId] < 0) {
    return false;  // a user's event that happens to be called so
  }
  plan.name = rest.empty() ? kNoName : trace_.names.intern(name_in(rest));
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const std::string& field = schema.fields[i].name;
    if (field != kFirstEnter &&
        std::find(kSpanFields.begin(), kSpanFields.end(), field) == kSpanFields.end()) {
      plan.user_fields.emplace_back(static_cast<std::uint16_t>(i), trace_.names.intern(field));
    }
  }
  return true;
}

// Exactly one field with the role span.start or span.duration.
bool Loader::Impl::plan_whole_span(Plan& plan, const Schema& schema) {
  plan.field.fill(kNoField);
  int roles = 0;
  const AnnotationsByField annotations(schema);
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const auto at = static_cast<std::int16_t>(i);
    const std::string_view role = annotations.find(i, "dial9.role").value_or("");
    const std::string& name = schema.fields[i].name;
    if (role == "span.start" || role == "span.duration") {
      ++roles;
      plan.field[role == "span.start" ? kWholeStart : kWholeDuration] = at;
      plan.unit_ns = unit_of(annotations, i);
    } else if (role == "span.name") {
      plan.field[kWholeName] = at;
    } else if (role == "tokio.worker_id") {
      plan.field[kWholeWorker] = at;
    } else if (role == "tokio.task_id" || name == "dial9.tokio.task_id") {
      plan.field[kWholeTask] = at;
    }
    plan.user_fields.emplace_back(static_cast<std::uint16_t>(i), trace_.names.intern(name));
  }
  if (roles != 1 || !schema.has_timestamp) {
    plan.user_fields.clear();
    return false;
  }
  constexpr std::string_view kMetrique = "metrique:";
  const std::string_view name = schema.name;
  plan.name =
      trace_.names.intern(name.starts_with(kMetrique) ? name.substr(kMetrique.size()) : name);
  plan.handler = &Impl::on_whole_span;
  return true;
}

void Loader::Impl::add_map_fields(const format::Value& value) {
  for (format::ElementCursor cursor(value); cursor.next();) {
    const format::Value& key = cursor.key();
    const Cell key_cell = cell(key);
    if (key_cell.type == CellType::kText) {
      span_cells_.push_back({static_cast<NameId>(key_cell.bits), cell(cursor.value())});
    }
  }
}

Range Loader::Impl::span_fields(const Event& event, const Plan& plan) {
  const auto first = static_cast<std::uint32_t>(span_cells_.size());
  for (const auto& [position, name] : plan.user_fields) {
    const format::Value& value = event.values[position];
    if (!value.is_present) {
      continue;
    }
    if (value.type == FieldType::kStringMap || value.type == FieldType::kDynamicMap) {
      add_map_fields(value);
    } else {
      span_cells_.push_back({name, cell(value)});
    }
  }
  return {first, static_cast<std::uint32_t>(span_cells_.size())};
}

void Loader::Impl::on_span_enter(const Event& event, const Plan& plan) {
  RawSpan raw;
  raw.at_ns = event.timestamp_ns;
  raw.kind = RawSpanKind::kEnter;
  raw.id = identity(event, plan.field[kId], identity(event, plan.field[kOtherId], 0));
  raw.parent = identity(event, plan.field[kParent], 0);
  raw.has_parent = raw.parent != 0;
  raw.start_ns = number(event, plan.field[kStart], kUnknownNs);
  raw.worker = number32(event, plan.field[kWorker], kUnknownWorker);
  const NameId name = text(event, plan.field[kName]);
  raw.name = name == kNoName ? plan.name : name;
  raw.fields = span_fields(event, plan);
  spans_.push_back(raw);
}

// An exit that carries the active time ends the span; an older one only this piece of it.
void Loader::Impl::on_span_exit(const Event& event, const Plan& plan) {
  RawSpan raw;
  raw.at_ns = event.timestamp_ns;
  raw.id = identity(event, plan.field[kId], identity(event, plan.field[kOtherId], 0));
  const bool is_newest = plan.field[kOtherId] >= 0;  // ends with a close of its own
  raw.kind = plan.field[kActive] >= 0 && !is_newest ? RawSpanKind::kFinalExit : RawSpanKind::kExit;
  raw.active_ns = number(event, plan.field[kActive], kUnknownNs);
  raw.idle_ns = number(event, plan.field[kIdle], kUnknownNs);
  raw.parent = identity(event, plan.field[kParent], 0);
  raw.has_parent = raw.parent != 0;
  raw.poll_count = number32(event, plan.field[kPollCount], 0);
  raw.is_completed = number(event, plan.field[kCompleted], 1) != 0;
  const NameId name = text(event, plan.field[kName]);
  raw.name = name == kNoName ? plan.name : name;
  if (raw.kind == RawSpanKind::kFinalExit) {
    raw.fields = span_fields(event, plan);  // set late; an older exit repeats the enter's
  }
  spans_.push_back(raw);
}

void Loader::Impl::on_span_close(const Event& event, const Plan& plan) {
  RawSpan raw;
  raw.at_ns = event.timestamp_ns;
  raw.kind = RawSpanKind::kClose;
  raw.id = identity(event, plan.field[kId], identity(event, plan.field[kOtherId], 0));
  raw.parent = identity(event, plan.field[kParent], 0);
  raw.has_parent = raw.parent != 0;
  raw.start_ns = number(event, plan.field[kStart], kUnknownNs);
  raw.active_ns = number(event, plan.field[kActive], kUnknownNs);
  raw.poll_count = number32(event, plan.field[kPollCount], 0);
  const NameId name = text(event, plan.field[kName]);
  raw.name = name == kNoName ? plan.name : name;
  raw.fields = span_fields(event, plan);
  spans_.push_back(raw);
}

void Loader::Impl::on_whole_span(const Event& event, const Plan& plan) {
  RawSpan raw;
  raw.at_ns = event.timestamp_ns;
  raw.kind = RawSpanKind::kWhole;
  raw.start_ns = number(event, plan.field[kWholeStart], kUnknownNs);
  if (plan.field[kWholeDuration] >= 0) {
    const std::uint64_t duration =
        times(number(event, plan.field[kWholeDuration], kUnknownNs), plan.unit_ns);
    raw.start_ns = duration <= event.timestamp_ns ? event.timestamp_ns - duration : kUnknownNs;
  }
  raw.worker = number32(event, plan.field[kWholeWorker], kUnknownWorker);
  raw.task_id = identity(event, plan.field[kWholeTask], 0);
  const NameId name = text(event, plan.field[kWholeName]);
  raw.name = name == kNoName ? plan.name : name;
  raw.fields = span_fields(event, plan);
  spans_.push_back(raw);
}

}  // namespace dial9::analysis
