// A register file in DWARF's numbering, with a mask of what is known: every register in an
// interrupted frame, only pc, sp and frame pointer in the frames above it. Plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace dial9::unwind {

class Registers {
 public:
  static constexpr unsigned kCount = 33;  // AArch64: x0-x30, sp, and the pc, which has no number

  void set(unsigned number, std::uint64_t value) {
    value_[number] = value;
    known_ |= std::uint64_t{1} << number;
  }
  bool knows(std::uint64_t number) const {
    return number < kCount && ((known_ >> number) & 1) != 0;
  }
  // Only for a register that is known.
  std::uint64_t operator[](std::uint64_t number) const { return value_[number]; }
  void clear() { known_ = 0; }

 private:
  std::array<std::uint64_t, kCount> value_;  // unset where `known_` has no bit
  std::uint64_t known_ = 0;
};

}  // namespace dial9::unwind
