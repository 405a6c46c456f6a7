// See demangle.h. The library's demangler has no bound of its own: a part of a name that refers to
// an earlier part twice or three times doubles or trebles it, and the next part refers to that.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "symbolize/short_name.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMaxMangledBytes = 4096;

bool take_end(std::string_view* text, std::string_view end) {
  if (!text->ends_with(end)) return false;
  text->remove_suffix(end.size());
  return true;
}
// g++ makes of a coroutine `f(int)` functions `f(f(int)::<mangled>.Frame*) [clone .actor]`: what is
// in the brackets, up to the frame, is the coroutine. Empty: not one of those.
std::string_view coroutine_in(std::string_view text) {
  const std::size_t frame = text.rfind("::_Z");
  if (frame == std::string_view::npos || !take_end(&text, ".Frame*)")) return {};
  for (std::size_t at = text.find('('); at < frame; at = text.find('(', at + 1)) {
    const std::string_view name = text.substr(0, at);
    const std::string_view inside = text.substr(at + 1, frame - at - 1);
    if (inside.starts_with(name)) return inside;
  }
  return {};
}

// The parts of a coroutine's body, by the names that g++ and clang give them.
std::string coroutine_text(const std::string& text) {
  std::string_view name = text;
  take_end(&name, " [clone .cold]");
  if (take_end(&name, " [clone .actor]")) {
    const std::string_view coroutine = coroutine_in(name);
    return coroutine.empty() ? text : std::string(coroutine) + " [coroutine]";
  }
  if (take_end(&name, " [clone .resume]")) return std::string(name) + " [coroutine]";
  for (const char* const part : {" [clone .destroy]", " [clone .cleanup]"}) {
    if (!take_end(&name, part)) continue;
    const std::string_view coroutine = coroutine_in(name);
    return std::string(coroutine.empty() ? name : coroutine) + " [coroutine's end]";
  }
  return text;
}

}  // namespace

// k references make a name that had none the cube root of 3 to the k-th times as long (three to a
// part is the worst).
double unfolded_at_most(std::string_view name) {
  constexpr double kGrowth = 1.4422495703;
  double bytes = static_cast<double>(name.size());
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    const char next = name[i + 1];
    const bool is_reference =
        (name[i] == 'S' || name[i] == 'T') && (next == '_' || (next >= '0' && next <= '9') ||
                                               (name[i] == 'S' && next >= 'A' && next <= 'Z'));
    bytes *= is_reference ? kGrowth : 1;
  }
  return bytes;
}

std::string demangle(std::string_view name, std::size_t most_bytes) {
  std::string mangled(name);
  if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangledBytes ||
      unfolded_at_most(mangled) > static_cast<double>(most_bytes)) {
    return mangled;
  }
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? coroutine_text(text) : mangled;
  std::free(text);
  return result;
}

std::string readable_name(std::string_view name, std::size_t most_bytes) {
  if (!name.starts_with("_Z")) return std::string(name);
  std::string whole = demangle(name, most_bytes);
  const bool is_readable = whole != name && whole.size() <= kMostReadableBytes;
  if (is_readable) return whole;
  std::optional<std::string> shortened = short_name(name);
  return shortened ? *std::move(shortened) : whole;
}

}  // namespace dial9::symbolize
