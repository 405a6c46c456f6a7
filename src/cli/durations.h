// Durations on the command line: "250us", "1.5s", "20ms", "7" (ns).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dial9::cli {

// Nanoseconds of a number with a unit of ns, us, ms, s or min; none is ns. nullopt: not understood,
// negative, or beyond 64 bits.
std::optional<std::uint64_t> parse_duration(std::string_view text);

// For Argument::check(): the error text, or empty.
std::string check_duration(const std::string& text);

// Why nothing can lie from `from` on and before `to`, durations that were given for options of
// these names, or empty for none: the error text, or empty.
std::string check_range(const std::string& from_name, const std::string& from,
                        const std::string& to_name, const std::string& to);

}  // namespace dial9::cli
