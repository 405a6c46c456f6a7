// What replies of rows have in common: the columns that say how each row is answered and which
// values are its own, and small numbers for the texts that values refer to.
// Spec: docs/spec/http_api.md, "Lanes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/columns.h"
#include "server/window.h"

namespace dial9::server {

// The columns `mode`, `rows` and `brows`.
class RowColumns {
 public:
  // Ends a row: the exact and the bin columns have so many values now.
  void end(std::uint8_t mode, std::size_t exact, std::size_t bins) {
    mode_.push_back(mode);
    rows_.push_back(static_cast<std::uint32_t>(exact));
    brows_.push_back(static_cast<std::uint32_t>(bins));
  }
  void add_to(ColumnWriter& out) const {
    out.add("mode", mode_);
    out.add("rows", rows_);
    out.add("brows", brows_);
  }

 private:
  std::vector<std::uint8_t> mode_;
  std::vector<std::uint32_t> rows_{0}, brows_{0};
};

// Gives each text that a reply refers to a small number of its own.
template <class Key>
class Dictionary {
 public:
  template <class MakeText>
  std::uint32_t number(Key key, MakeText make_text) {
    const auto [at, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(make_text());
    return at->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<Key, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
};

}  // namespace dial9::server
