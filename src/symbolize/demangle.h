// Names of C++ functions as people write them. Strongest property: bounded: a name that could have
// been made to unfold without end is shown as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dial9::symbolize {

// A coroutine's body, which compilers cut into functions of their own, has its name as it is
// written and " [coroutine]" behind it. `name` itself where it isn't a mangled C++ name, is longer
// than 4 KiB, or refers to parts of itself so often that it might unfold to more than `most_bytes`
// (as it is: what a tool has room for; a host's process has less).
std::string demangle(std::string_view name, std::size_t most_bytes = 100'000'000);

// What demangle() may unfold the name to at most, by that estimate; infinite where it never ends.
double unfolded_at_most(std::string_view name);

// For readers: never mangled text where that can be helped. As demangle(), but a name that can't be
// unfolded within `most_bytes`, or has more than kMostReadableBytes then, has its short form
// (short_name.h), with its templates' arguments left out.
inline constexpr std::size_t kMostReadableBytes = 4096;
std::string readable_name(std::string_view name, std::size_t most_bytes = 100'000'000);

}  // namespace dial9::symbolize
