// See modules.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/modules.h"

#include <algorithm>
#include <tuple>

#include "base/stable_sort.h"

namespace dial9::analysis {

void Modules::add(NameId run, const ModuleSetTimes& times, const Module& module) {
  rows_.push_back({run, times, module});
}

void Modules::sort() {
  const auto key = [](const Row& row) {
    return std::tie(row.run, row.times.since_ns, row.times.epoch, row.module);
  };
  dial9::stable_sort(rows_.begin(), rows_.end(),
                     [&](const Row& a, const Row& b) { return key(a) < key(b); });
  for (const Row& row : rows_) {
    const bool is_same_set = !sets_.empty() && sets_.back().run == row.run &&
                             sets_.back().times.since_ns == row.times.since_ns &&
                             sets_.back().times.epoch == row.times.epoch;
    if (!is_same_set) {
      const auto from = static_cast<std::uint32_t>(modules_.size());
      sets_.push_back({row.run, row.times, from, from});
    }
    Set& set = sets_.back();
    set.times.seen_ns = std::max(set.times.seen_ns, row.times.seen_ns);
    // Told again at the beginning of another segment.
    if (set.first != set.last && modules_.back() == row.module) {
      continue;
    }
    modules_.push_back(row.module);
    set.last = static_cast<std::uint32_t>(modules_.size());
  }
  rows_ = {};
}

Modules::Place Modules::place(NameId run, std::uint64_t at_ns) const {
  const auto next = std::partition_point(sets_.begin(), sets_.end(), [&](const Set& set) {
    return set.run != run ? set.run < run : set.times.since_ns <= at_ns;
  });
  Place place{static_cast<std::size_t>(next - sets_.begin()), Answer::kNone};
  const bool has_next = next != sets_.end() && next->run == run;
  const bool has_before = next != sets_.begin() && std::prev(next)->run == run;
  if (!has_next) {
    place.answer = has_before ? Answer::kBefore : Answer::kNone;
    return place;
  }
  const ModuleSetTimes& after = next->times;
  // Since its predecessor was seen last nothing was unloaded, so all that it has is right.
  const bool next_holds =
      after.before_held_ns == 0 || (after.only_added && at_ns > after.before_held_ns);
  if (!has_before) {
    place.answer = next_holds ? Answer::kNext : Answer::kNone;
    return place;
  }
  const ModuleSetTimes& before = std::prev(next)->times;
  const bool is_adjacent = after.epoch == before.epoch + 1;
  if (at_ns <= before.seen_ns || (is_adjacent && at_ns <= after.before_held_ns)) {
    place.answer = Answer::kBefore;
  } else if (after.only_added && at_ns > after.before_held_ns) {
    place.answer = Answer::kNext;
  } else if (is_adjacent) {
    place.answer = Answer::kBoth;
  }
  return place;
}

std::optional<Module> Modules::in(const Set& set, std::uint64_t address) const {
  const auto first = modules_.begin() + set.first;
  const auto last = modules_.begin() + set.last;
  const auto after = std::partition_point(
      first, last, [&](const Module& module) { return module.begin <= address; });
  if (after == first || address >= std::prev(after)->end) {
    return std::nullopt;
  }
  return *std::prev(after);
}

std::optional<Module> Modules::at(NameId run, std::uint64_t at_ns, std::uint64_t address) const {
  const Place found = place(run, at_ns);
  switch (found.answer) {
    case Answer::kNone:
      return std::nullopt;
    case Answer::kBefore:
      return in(sets_[found.next - 1], address);
    case Answer::kNext:
      return in(sets_[found.next], address);
    case Answer::kBoth:
      break;
  }
  const std::optional<Module> before = in(sets_[found.next - 1], address);
  return before == in(sets_[found.next], address) ? before : std::nullopt;
}

std::uint32_t Modules::stretch(NameId run, std::uint64_t at_ns) const {
  const Place found = place(run, at_ns);
  return static_cast<std::uint32_t>(found.next * 4 + static_cast<std::size_t>(found.answer));
}

std::size_t Modules::bytes() const {
  return rows_.capacity() * sizeof(Row) + sets_.capacity() * sizeof(Set) +
         modules_.capacity() * sizeof(Module);
}

}  // namespace dial9::analysis
