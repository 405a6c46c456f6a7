// See window.h.
// Strongest property: no window asks for more than kMaxBins bins.
// Spec: docs/spec/http_api.md, "Binary columns".
// SPDX-License-Identifier: Apache-2.0
#include "server/window.h"

namespace dial9::server {
namespace {

constexpr double kLongestNs = 9.2e18;  // some 290 years

}  // namespace

double WindowQuery::absolute_t0(const Run& run) const {
  return t0_ns + static_cast<double>(run.trace().begin_ns);
}
double WindowQuery::absolute_t1(const Run& run) const {
  return t1_ns() + static_cast<double>(run.trace().begin_ns);
}
analysis::Window WindowQuery::absolute(const Run& run) const {
  return {absolute_t0(run), bin_ns, bins};
}

Result<WindowQuery> window_query(const Call& call) {
  const auto t0 = call.number("t0", -kLongestNs, kLongestNs);
  if (!t0) return std::unexpected(t0.error());
  const auto bin = call.number("bin", 1e-3, kLongestNs / kMaxBins);
  if (!bin) return std::unexpected(bin.error());
  const auto bins = call.integer("bins", 1, kMaxBins);
  if (!bins) return std::unexpected(bins.error());
  const auto exact = call.integer("exact", 1, kMaxBins, *bins);
  if (!exact) return std::unexpected(exact.error());
  return WindowQuery{*t0, *bin, static_cast<std::uint32_t>(*bins),
                     static_cast<std::uint32_t>(*exact)};
}

}  // namespace dial9::server
