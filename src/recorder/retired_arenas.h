// Arenas of recorders that stopped, kept mapped as long as a thread might still write into them.
// Strongest property: a thread that was interrupted inside a record call, however long, writes into
// memory that is still its own; the pages nobody can reach are given back at once.
// Spec: docs/spec/recorder.md, "Life of a recorder".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "recorder/arena.h"

namespace dial9::internal {

// After publish_arena(nullptr). Unmaps the arena now if nobody can reach it, else keeps it.
// `keeps_pages`: all of it, since its file stays, being the only record of what no segment has.
void retire_arena(std::unique_ptr<Arena> arena, bool keeps_pages);

// Unmaps those that nobody can reach any more. Returns how many are left; 0 if it couldn't look.
std::size_t sweep_retired_arenas();

}  // namespace dial9::internal
