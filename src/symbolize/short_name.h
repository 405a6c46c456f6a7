// Mangled C++ names as people write them, without what makes them long: the arguments of templates
// stand as "…", the parameters of functions as "(…)". Strongest property: work and result are
// bounded by the name's own length, however often it refers to parts of itself, for nothing is
// unfolded. Spec: docs/spec/flame.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dial9::symbolize {

inline constexpr std::size_t kMostShortenedBytes = 16'384;  // of a mangled name

// "_ZN4asio3runI…" as "asio::run<…>(…)". nullopt: not a mangled name of the Itanium C++ ABI, one
// with a construct that isn't known here, or longer than kMostShortenedBytes. Recurses at most 128
// deep. Allocates the result alone.
std::optional<std::string> short_name(std::string_view mangled);

}  // namespace dial9::symbolize
