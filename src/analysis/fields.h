// Whole numbers out of decoded values. Internal to analysis/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/decoder.h"

namespace dial9::analysis {

// The 64 bits of a whole number or a boolean as they are: for ids. `missing` for an absent value
// and for one of any other type.
inline std::uint64_t identity_of(const format::Value& value, std::uint64_t missing) {
  using format::FieldType;
  switch (value.type) {
    case FieldType::kI64:
    case FieldType::kBool:
    case FieldType::kVarint:
    case FieldType::kU8:
    case FieldType::kU16:
    case FieldType::kU32:
      return value.is_present ? value.bits : missing;
    default:
      return missing;
  }
}

// The same for what is measured or counted: a negative one says nothing, so it is `missing`.
inline std::uint64_t number_of(const format::Value& value, std::uint64_t missing) {
  const bool is_negative = value.type == format::FieldType::kI64 && value.i64() < 0;
  return is_negative ? missing : identity_of(value, missing);
}

}  // namespace dial9::analysis
