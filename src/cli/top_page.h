// The page of `dial9 top`: a pure function of a look and of the terminal's size. Strongest
// property: no line is wider than the terminal and no page is higher, whatever is in the process.
// Spec: docs/guide/on_call.md, "top".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/snapshot_view.h"

namespace dial9::cli {

inline constexpr std::size_t kNoHeight = 0;

// Lines without line ends, of at most `width` columns (at least 20), at most `height` of them
// (kNoHeight: as many as there are).
std::vector<std::string> top_page(const ProcessView& view, std::size_t width, std::size_t height);

// What of valid UTF-8 fits into `width` columns of a terminal, whole characters.
std::string cut_to(std::string_view text, std::size_t width);

}  // namespace dial9::cli
