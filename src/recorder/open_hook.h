// Tests: the program's open() and close(), which come before the C library's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// By the calling thread, so far.
std::uint64_t openings() noexcept;

// Called in the opening thread with each path that was opened, before the opener has the
// descriptor. Null: nothing. Of the calling thread alone.
using OpenHook = void (*)(const char* path);
void set_open_hook(OpenHook hook) noexcept;

// The same with each descriptor that is about to be closed.
using CloseHook = void (*)(int fd);
void set_close_hook(CloseHook hook) noexcept;

}  // namespace dial9::internal
