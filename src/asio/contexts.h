// Which runtime an Asio execution context is (declared in dial9/internal/asio_seam.h). Strongest
// property: lock-free for a context seen before, and a context that says it is gone
// (dial9::asio::name_context) never lends its name to the next one at its address.
// Spec: docs/spec/events_ours.md, "Asio".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dial9/internal/asio_seam.h"

namespace dial9::asio::hooks {

// Contexts at a time; those beyond have no runtime (id 0).
inline constexpr std::uint32_t kMaxContexts = 256;

}  // namespace dial9::asio::hooks
