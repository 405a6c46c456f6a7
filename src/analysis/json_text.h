// JSON text of strings, numbers and decoded values, appended to a string. Output is always valid
// JSON and valid UTF-8: what isn't valid UTF-8 is shown as U+FFFD, a NaN or infinity as null.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/decoder.h"

namespace dial9::analysis {

// "text", quoted and escaped.
void append_json_string(std::string& out, std::string_view text);
void append_json_number(std::string& out, std::uint64_t value);
void append_json_number(std::string& out, std::int64_t value);
void append_json_number(std::string& out, double value);

// Any decoded value. Pool references are looked up in `decoder` (a string that isn't defined so far
// becomes null); addresses become "0x..." strings, since JSON numbers lose them; Bytes become a
// string of hexadecimal digits. A map's key that isn't text becomes its JSON as text; a list or map
// inside such a key its encoded bytes in hexadecimal digits (each level of JSON in JSON would
// double it).
//
// A few bytes can refer to megabytes of a pool, again and again: what a reference stands for is
// replaced by "(left out: too long)" where `out` would grow over `max_bytes` with it.
inline constexpr std::size_t kMaxExpandedBytes = std::size_t{16} << 20;
void append_json_value(std::string& out, const format::Value& value, const format::Decoder& decoder,
                       std::size_t max_bytes = kMaxExpandedBytes);

// `text` with every sequence that isn't valid UTF-8 replaced by U+FFFD.
std::string to_utf8(std::string_view text);

// The same for a terminal or a log: control characters are replaced by U+FFFD, too, so that a name
// can neither forge a line nor send commands to the terminal.
std::string to_printable(std::string_view text);

}  // namespace dial9::analysis
