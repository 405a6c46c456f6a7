// Ids of tasks, spans and threads on the command line, as the reports show them: in decimal digits,
// or in hexadecimal ones behind 0x. Strongest property: what isn't wholly a number is none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dial9::cli {

// nullopt: no id, or one beyond 64 bits.
std::optional<std::uint64_t> to_id(const std::string& text);

// For Argument::check(): the error text, or empty.
std::string check_id(const std::string& text);

}  // namespace dial9::cli
