// SPDX-License-Identifier: Apache-2.0
#include "analysis/segment_gaps.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace dial9::analysis {
namespace {

constexpr std::size_t kMaxRanges = 4'096;

bool parse(std::string_view text, std::uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() &&
         number != ~std::uint64_t{0};
}

}  // namespace

void SegmentGaps::merge_with_next(Ranges& ranges, Ranges::iterator at) {
  const auto next = std::next(at);
  if (next == ranges.end() || next->first != at->second.last + 1) {
    return;
  }
  at->second.last = next->second.last;
  at->second.end_ns = next->second.end_ns;
  ranges.erase(next);
}

void SegmentGaps::add(const std::string& run, std::string_view index_text, std::uint64_t at_ns) {
  std::uint64_t index = 0;
  if (!parse(index_text, index)) {
    return;
  }
  Ranges& ranges = runs_[run];
  const auto after = ranges.upper_bound(index);
  const auto before = after == ranges.begin() ? ranges.end() : std::prev(after);
  if (before != ranges.end() && index <= before->second.last) {
    if (index == before->first) {
      before->second.begin_ns = std::min(before->second.begin_ns, at_ns);
    }
    if (index == before->second.last) {
      before->second.end_ns = std::max(before->second.end_ns, at_ns);
    }
    return;
  }
  if (before != ranges.end() && index == before->second.last + 1) {
    before->second.last = index;
    before->second.end_ns = at_ns;
    return merge_with_next(ranges, before);
  }
  if (count_ >= kMaxRanges) {
    return;
  }
  ++count_;
  merge_with_next(ranges, ranges.emplace(index, Range{index, at_ns, at_ns}).first);
}

std::vector<SegmentGaps::Gap> SegmentGaps::gaps() const {
  std::vector<Gap> out;
  for (const auto& [run, ranges] : runs_) {
    for (auto at = ranges.begin(); at != ranges.end() && std::next(at) != ranges.end(); ++at) {
      const auto next = std::next(at);
      const std::uint64_t begin_ns =
          at->second.end_ns - std::min(at->second.end_ns, kOlderRecordsNs);
      out.push_back({at->second.last + 1, next->first - 1, begin_ns,
                     std::max(begin_ns, next->second.begin_ns)});
    }
  }
  return out;
}

}  // namespace dial9::analysis
