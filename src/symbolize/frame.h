// A function at an address, as tools show it: by its name, where it is written, and the line that
// runs there. Strongest property: what isn't known is empty, never a guess.
// Spec: docs/spec/flame.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace dial9::symbolize {

struct Frame {
  std::string name;  // as a person reads it
  // Where the function is written; line 0: not known.
  std::string file = {};
  std::uint32_t line = 0;
  // The line that runs at the address, or of the call that the next inner frame was inlined at.
  std::string at_file = {};
  std::uint32_t at_line = 0;
  bool is_inlined = false;  // into the next outer one

  bool operator==(const Frame&) const = default;
};

}  // namespace dial9::symbolize
