// Names of the running kernel's functions, as /proc/kallsyms tells them. Strongest property: only
// of the kernel's own text, which stays where it is until the next boot; what a loadable module may
// have lain at has no name. Spec: docs/spec/flame.md, "The kernel".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dial9::symbolize {

class KernelSymbols {
 public:
  // Errors: kPermission (the list hides the addresses from this user), kUnsupported (there is none,
  // or it doesn't say where the kernel's text ends), kIo (it can't be read for now).
  static Result<KernelSymbols> read(const std::string& path = "/proc/kallsyms");
  // Of such a list's text. A file of 16 MiB takes about 60 ms.
  static Result<KernelSymbols> parse(std::string_view text);

  // Empty: none of the kernel's own functions is there. Valid as long as this.
  std::string_view name(std::uint64_t address) const;
  std::size_t size() const { return functions_.size(); }

 private:
  struct Function {
    std::uint64_t begin = 0;  // up to the next one's
    std::string name;         // empty: something else than a function begins here
  };
  std::vector<Function> functions_;
};

// Which boot of which machine this is; empty: unknown.
std::string own_boot_id();

}  // namespace dial9::symbolize
