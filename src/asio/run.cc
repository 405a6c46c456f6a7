// What dial9::asio::run() asks of the build it is in.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/asio_seam.h"

#if !defined(DIAL9_HAS_NO_INTERPOSER)
extern "C" const char* const dial9_interpose_is_linked[];
#endif

namespace dial9::asio::hooks {

bool has_interposer() noexcept {
#if defined(DIAL9_HAS_NO_INTERPOSER)
  return false;
#else
  return dial9_interpose_is_linked[0] != nullptr;
#endif
}

}  // namespace dial9::asio::hooks
