// A plugin that records through the recorder of whoever loads it.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/event.h"

namespace {
DIAL9_EVENT(PluginEvent, (std::uint64_t, number), (dial9::interned, name));
}  // namespace

extern "C" void plugin_record(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    dial9::record(PluginEvent{first + i, "from a plugin"});
  }
}
