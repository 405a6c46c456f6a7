// Event types that no rule of ours explains are kept whole, as tables: a custom event is a
// first-class citizen. Writers that disagree about a type's fields get a table each.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/annotations.h"
#include "analysis/loader_impl.h"

namespace dial9::analysis {
namespace {

bool has_same_fields(const EventTable& table, const std::vector<EventTable::Field>& fields) {
  return std::equal(table.fields.begin(), table.fields.end(), fields.begin(), fields.end(),
                    [](const EventTable::Field& a, const EventTable::Field& b) {
                      return a.name == b.name && a.type == b.type;
                    });
}

// The same for the same name and fields.
std::uint64_t hash_of(NameId name, const std::vector<EventTable::Field>& fields) {
  constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a over whole numbers
  std::uint64_t hash = (0xcbf29ce484222325 ^ name) * kPrime;
  for (const EventTable::Field& field : fields) {
    hash = (hash ^ field.name) * kPrime;
    hash = (hash ^ static_cast<std::uint64_t>(field.type)) * kPrime;
  }
  return hash;
}

}  // namespace

void Loader::Impl::plan_custom(Plan& plan, const format::Schema& schema) {
  const NameId name = trace_.names.intern(schema.name);
  const AnnotationsByField annotations(schema);
  std::vector<EventTable::Field> fields;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    fields.push_back({trace_.names.intern(schema.fields[i].name),
                      trace_.names.intern(annotations.unit(i).value_or("")),
                      trace_.names.intern(annotations.find(i, "kind").value_or("")),
                      schema.fields[i].type});
  }
  plan.handler = &Impl::on_custom;
  std::vector<std::uint32_t>& tables = tables_by_hash_[hash_of(name, fields)];
  for (const std::uint32_t i : tables) {
    EventTable& table = trace_.custom[i];
    if (table.name == name && table.has_timestamp == schema.has_timestamp &&
        has_same_fields(table, fields)) {
      table.fields = std::move(fields);  // the annotations may be new
      plan.table = i;
      return;
    }
  }
  EventTable table;
  table.name = name;
  table.has_timestamp = schema.has_timestamp;
  table.fields = std::move(fields);
  plan.table = static_cast<std::uint32_t>(trace_.custom.size());
  tables.push_back(plan.table);
  trace_.custom.push_back(std::move(table));
}

void Loader::Impl::on_custom(const format::Event& event, const Plan& plan) {
  EventTable& table = trace_.custom[plan.table];
  table.at_ns.push_back(event.timestamp_ns);
  for (const format::Value& value : event.values) {
    const Cell kept = cell(value);
    table.bits.push_back(kept.bits);
    table.types.push_back(kept.type);
  }
}

}  // namespace dial9::analysis
