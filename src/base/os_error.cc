// The mapping from errno to ErrorCode, and the wording. See os_error.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/os_error.h"

#include <cerrno>
#include <system_error>

namespace dial9 {

ErrorCode error_code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermission;
    case EEXIST:
    case EWOULDBLOCK:
      return ErrorCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kNoSpace;
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case ELOOP:
    case ENAMETOOLONG:
      return ErrorCode::kLimit;
    case EINVAL:
    case EISDIR:
      return ErrorCode::kInvalidArgument;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnsupported;
    case ECANCELED:
      return ErrorCode::kCancelled;
    default:
      return ErrorCode::kIo;
  }
}

std::unexpected<Error> os_error(int error_number, std::string_view action, std::string_view subject,
                                std::string_view cure) {
  std::string message = "cannot ";
  message.append(action).append(" '").append(subject).append("': ");
  message += std::generic_category().message(error_number);
  if (!cure.empty()) {
    message.append("; ").append(cure);
  }
  return make_error(error_code_of(error_number), std::move(message));
}

}  // namespace dial9
