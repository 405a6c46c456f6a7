// Interned text: places, names, string values. A name id stands for one text for the life of a
// trace, so columns hold 4 bytes and grouping compares integers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dial9::analysis {

using NameId = std::uint32_t;
inline constexpr NameId kNoName = 0;  // the empty text

class Names {
 public:
  Names();
  Names(Names&&) = default;
  Names& operator=(Names&&) = default;

  // The id of `text`; the same for the same text. Copies it the first time.
  NameId intern(std::string_view text);
  // An id of its own for a string whose text comes later, or never: reads "(undefined string)"
  // until define() gives it one. intern() and find() don't know it.
  NameId add_undefined();
  void define(NameId id, std::string_view text);
  // The id of `text`, or kNoName if it isn't there.
  NameId find(std::string_view text) const;
  // Valid as long as this. `id` came from intern().
  std::string_view text(NameId id) const { return texts_[id]; }

  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const { return bytes_; }  // about, with overhead

 private:
  std::deque<std::string> texts_;  // a deque: the keys below are views into it
  std::unordered_map<std::string_view, NameId> ids_;
  std::size_t bytes_ = 0;
};

}  // namespace dial9::analysis
