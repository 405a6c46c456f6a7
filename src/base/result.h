// Errors as values. `Result<T>` is what every function of the inside returns that can fail for a
// reason that lies in the world (a file, an input, a limit); nothing here throws or allocates on
// success. Spec: docs/style in CONTRIBUTING.md, "Errors".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace dial9 {

// What kind of thing went wrong; the message says which and names the cure.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // the caller's: a wrong option or value
  kNotFound,
  kPermission,
  kAlreadyExists,  // also: locked by another process
  kNoSpace,
  kIo,           // any other failure of the system
  kCorrupt,      // input that isn't what it says it is; `offset` is set
  kTruncated,    // input that ends inside a frame; `offset` is set
  kUnsupported,  // a version, a platform, a missing right
  kLimit,        // a stated bound was reached
  kCancelled,
};

inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;               // one line, ends without a full stop
  std::uint64_t offset = kNoOffset;  // byte offset in the input, where one is known
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> make_error(ErrorCode code, std::string message,
                                         std::uint64_t offset = kNoOffset) {
  return std::unexpected<Error>(Error{code, std::move(message), offset});
}

}  // namespace dial9
