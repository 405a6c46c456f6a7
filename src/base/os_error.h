// Turns an errno into an Error: the right code, and a message that says what was attempted, on
// what, and why the system refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"

namespace dial9 {

// "cannot {action} '{subject}': {the system's text}{; cure}". `error_number` is an errno value;
// `cure` (optional) is what the user can do about it. Allocates; thread-safe.
std::unexpected<Error> os_error(int error_number, std::string_view action, std::string_view subject,
                                std::string_view cure = {});

// The code for an errno value; kIo for all that have none of their own.
ErrorCode error_code_of(int error_number);

}  // namespace dial9
