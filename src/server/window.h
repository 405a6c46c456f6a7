// The stretch of time that a query asks for, in bins of a pixel each, and helpers for the two
// ways in which a row is answered: exactly, or as bins. Spec: docs/spec/http_api.md, "Binary
// columns".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/lod.h"
#include "base/result.h"
#include "server/router.h"
#include "server/run.h"

namespace dial9::server {

inline constexpr std::uint32_t kMaxBins = 4096;
inline constexpr std::uint8_t kModeEmpty = 0;
inline constexpr std::uint8_t kModeExact = 1;
inline constexpr std::uint8_t kModeBins = 2;

struct WindowQuery {
  double t0_ns = 0;  // from the trace's start
  double bin_ns = 1;
  std::uint32_t bins = 1;
  std::uint32_t exact = 1;  // at most so many slices of a row are answered exactly

  double t1_ns() const { return t0_ns + bin_ns * bins; }
  // The same on the trace's own clock.
  analysis::Window absolute(const Run& run) const;
  double absolute_t0(const Run& run) const;
  double absolute_t1(const Run& run) const;
};

// Reads t0, bin, bins and (optional) exact. Errors: kInvalidArgument.
Result<WindowQuery> window_query(const Call& call);

// The names of the parameters above, for Router::add.
inline constexpr std::string_view kWindowParameters = "t0 bin bins exact";

}  // namespace dial9::server
