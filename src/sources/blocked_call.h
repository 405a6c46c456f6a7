// What a blocked thread waits for, from the text of /proc/self/task/T/syscall: its system call by
// name, the descriptor or futex word in its arguments, and the cause as far as these tell.
// Strongest property: what the numbers don't tell is left out. Spec: docs/spec/off_cpu_samples.md,
// "Causes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dial9::internal {

struct SyscallText {
  bool is_running = false;   // or waiting for a CPU
  std::int64_t number = -1;  // -1: blocked outside a system call
  std::array<std::uint64_t, 6> args{};
  std::uint64_t sp = 0;
  std::uint64_t pc = 0;
};
// Nothing: not of this form.
std::optional<SyscallText> parse_blocked_call(std::string_view text);

// What a descriptor is, as far as it matters here.
enum class FdKind : std::uint8_t { kUnknown, kSocket, kPipe, kFile, kOther };

struct BlockedCall {
  std::string_view name;   // "recv", "futex"; empty: none, or one without a name here
  std::string_view cause;  // empty: not known
  std::optional<std::uint64_t> fd;
  std::optional<std::uint64_t> object;
};
// `kind_of(fd)` is asked where the cause depends on it.
BlockedCall describe_call(const SyscallText& text, FdKind (*kind_of)(std::uint64_t fd));

// Asks nothing of the file itself: that could block.
FdKind fd_kind(std::uint64_t fd);
// The other end of a connected socket: "10.0.0.7:6379", "[::1]:80", "unix:/run/x". Empty: there is
// none, or it has no name. The descriptor may have become another's meanwhile: see the spec.
std::string peer_of(std::uint64_t fd);

}  // namespace dial9::internal
