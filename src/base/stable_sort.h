// A stable merge sort. std::stable_sort of libstdc++ 12 doesn't compile without warnings under
// clang (it uses a deprecated function), and sorts in quadratic time where it gets no memory. O(n
// log n) comparisons, one copy of the range as scratch; a range in order costs one pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace dial9 {

// Sorts [first, last) by `less`, equal elements in the order they were in. Random access iterators
// over default-constructible, movable values.
template <class Iterator, class Less>
void stable_sort(Iterator first, Iterator last, Less less) {
  using Value = typename std::iterator_traits<Iterator>::value_type;
  if (std::is_sorted(first, last, less)) {
    return;
  }
  const auto count = static_cast<std::size_t>(last - first);
  const auto at = [&](std::size_t i) { return first + static_cast<std::ptrdiff_t>(i); };
  constexpr std::size_t kRun = 16;
  for (std::size_t from = 0; from < count; from += kRun) {
    const std::size_t to = std::min(from + kRun, count);
    for (std::size_t i = from + 1; i < to; ++i) {  // insertion sort
      Value value = std::move(*at(i));
      std::size_t hole = i;
      for (; hole > from && less(value, *at(hole - 1)); --hole) {
        *at(hole) = std::move(*at(hole - 1));
      }
      *at(hole) = std::move(value);
    }
  }
  std::vector<Value> scratch(count);
  for (std::size_t width = kRun; width < count; width *= 2) {
    for (std::size_t from = 0; from < count; from += 2 * width) {
      const std::size_t middle = std::min(from + width, count);
      const std::size_t to = std::min(middle + width, count);
      std::merge(std::make_move_iterator(at(from)), std::make_move_iterator(at(middle)),
                 std::make_move_iterator(at(middle)), std::make_move_iterator(at(to)),
                 scratch.begin() + static_cast<std::ptrdiff_t>(from), less);
    }
    std::move(scratch.begin(), scratch.end(), first);
  }
}

}  // namespace dial9
