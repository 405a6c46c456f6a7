// See demangle.h. The library's demangler has no bound of its own: a part of a name that refers to
// an earlier part twice or three times doubles or trebles it, and the next part refers to that.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <cxxabi.h>

#include <cstdlib>

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMaxMangledBytes = 4096;
constexpr double kMostUnfoldedBytes = 1e8;

// What it may unfold to at most: k references make a name that had none the cube root of 3 to the
// k-th times as long (three to a part is the worst).
bool is_harmless(std::string_view name) {
  constexpr double kGrowth = 1.4422495703;
  double bytes = static_cast<double>(name.size());
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    const char next = name[i + 1];
    const bool is_reference =
        (name[i] == 'S' || name[i] == 'T') && (next == '_' || (next >= '0' && next <= '9') ||
                                               (name[i] == 'S' && next >= 'A' && next <= 'Z'));
    bytes *= is_reference ? kGrowth : 1;
  }
  return bytes <= kMostUnfoldedBytes;
}

}  // namespace

std::string demangle(std::string_view name) {
  std::string mangled(name);
  if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangledBytes || !is_harmless(mangled)) {
    return mangled;
  }
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : mangled;
  std::free(text);
  return result;
}

}  // namespace dial9::symbolize
