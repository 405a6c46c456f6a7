// Interning with a map from views into a deque, whose strings never move.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/names.h"

namespace dial9::analysis {

Names::Names() { intern({}); }

NameId Names::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) {
    return found->second;
  }
  const auto id = static_cast<NameId>(texts_.size());
  const std::string& kept = texts_.emplace_back(text);
  ids_.emplace(std::string_view(kept), id);
  constexpr std::size_t kOverheadBytes = sizeof(std::string) + 48;  // of the map's node and bucket
  bytes_ += text.size() + kOverheadBytes;
  return id;
}

NameId Names::add_undefined() {
  const auto id = static_cast<NameId>(texts_.size());
  texts_.emplace_back("(undefined string)");
  return id;
}

void Names::define(NameId id, std::string_view text) { texts_[id].assign(text); }

NameId Names::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? kNoName : found->second;
}

}  // namespace dial9::analysis
