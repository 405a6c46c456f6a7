// See anchors_json.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/anchors_json.h"

#include <algorithm>

namespace dial9::server {
namespace {

using analysis::Anchor;

// Wall time less monotonic time; wraps, as differences of it do.
std::uint64_t offset_of(const Anchor& anchor) { return anchor.realtime_ns - anchor.monotonic_ns; }

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
  return std::min(a - b, b - a);  // whichever way round doesn't wrap
}

// The first and the last of each stretch whose offsets differ by `slack_ns` at most from its first
// one's; what is left out is then off by twice that at most, from either end.
std::vector<Anchor> ends_of_stretches(const std::vector<Anchor>& anchors, std::uint64_t slack_ns) {
  std::vector<Anchor> out;
  for (std::size_t first = 0; first < anchors.size();) {
    std::size_t last = first;
    while (last + 1 < anchors.size() &&
           distance(offset_of(anchors[last + 1]), offset_of(anchors[first])) <= slack_ns) {
      ++last;
    }
    out.push_back(anchors[first]);
    if (last != first) out.push_back(anchors[last]);
    first = last + 1;
  }
  return out;
}

}  // namespace

ThinAnchors thin_anchors(const std::vector<Anchor>& anchors, std::size_t most) {
  constexpr std::uint64_t kWidestNs = std::uint64_t{1} << 62;
  for (std::uint64_t slack_ns = 0; slack_ns < kWidestNs; slack_ns = slack_ns * 2 + 1) {
    std::vector<Anchor> kept = ends_of_stretches(anchors, slack_ns);
    if (kept.size() <= most) return {std::move(kept), slack_ns * 2};
  }
  return {{anchors.front(), anchors.back()}, ~std::uint64_t{0}};
}

}  // namespace dial9::server
