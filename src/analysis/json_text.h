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
// string of hexadecimal digits.
void append_json_value(std::string& out, const format::Value& value,
                       const format::Decoder& decoder);

// `text` with every sequence that isn't valid UTF-8 replaced by U+FFFD.
std::string to_utf8(std::string_view text);

}  // namespace dial9::analysis
