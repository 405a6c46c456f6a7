// Collects the facts of a reply of details in the order in which they are shown.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/json.h"
#include "server/profile_json.h"
#include "server/run.h"

namespace dial9::server {

class Facts {
 public:
  explicit Facts(const Run& run) : run_(run) {}

  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) add(name, value, nullptr);
  }
  void duration(std::string_view name, std::uint64_t ns) {
    add(name, ns == analysis::kUnknownNs ? json() : json(ns), "ns");
  }
  void count(std::string_view name, std::uint64_t value) { add(name, value, nullptr); }
  void moment(std::string_view name, std::uint64_t at_ns) {
    add(name, nullptr, nullptr);
    facts_.back()["at_ns"] = run_.relative(at_ns);
  }
  void task(std::string_view name, std::uint32_t task) {
    add(name, nullptr, nullptr);
    facts_.back()["task"] = std::to_string(run_.trace().tasks.id[task]);
  }
  void cell(std::string_view name, const analysis::Cell& cell, std::string_view unit) {
    add(name, value_of(cell), unit.empty() ? json() : json(unit));
  }
  json take() { return std::move(facts_); }

 private:
  void add(std::string_view name, json value, json unit) {
    facts_.push_back({{"name", name}, {"value", std::move(value)}, {"unit", std::move(unit)}});
  }
  json value_of(const analysis::Cell& cell) const {
    constexpr double kExactInteger = 9007199254740992.0;  // 2^53: above, JSON numbers lose digits
    using analysis::CellType;
    switch (cell.type) {
      case CellType::kAbsent:
        return {};
      case CellType::kBool:
        return cell.bits != 0 ? "true" : "false";
      case CellType::kText:
        return std::string(run_.trace().names.text(static_cast<analysis::NameId>(cell.bits)));
      case CellType::kStack:
        return stack_text(run_, static_cast<std::uint32_t>(cell.bits));
      case CellType::kU64:
        if (cell.number() > kExactInteger) return std::to_string(cell.bits);
        return cell.bits;
      case CellType::kI64:
        if (std::abs(cell.number()) > kExactInteger) {
          return std::to_string(static_cast<std::int64_t>(cell.bits));
        }
        return static_cast<std::int64_t>(cell.bits);
      case CellType::kF64:
        return cell.number();
    }
    return {};
  }

  const Run& run_;
  json facts_ = json::array();
};

}  // namespace dial9::server
