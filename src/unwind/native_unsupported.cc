// See native.h: every walk says that there is no unwinder here. No call in this file reaches memory
// that isn't the caller's.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/native.h"

#include <bit>
#include <cerrno>

namespace dial9::unwind {

namespace native {

long system_call(long, long, long, long, long, long, long) noexcept { return -ENOSYS; }

std::uint64_t load_word(std::uint64_t address) noexcept {
  return *std::bit_cast<const std::uint64_t*>(address);
}

Result walk_context(const ucontext_t&, std::span<std::uint64_t>, const Options&) noexcept {
  return {};
}

Result walk_copy(const StackCopy&, std::span<std::uint64_t>, const Options&) noexcept { return {}; }

}  // namespace native

Result unwind_here(std::span<std::uint64_t>, const Options&) noexcept { return {}; }

}  // namespace dial9::unwind
