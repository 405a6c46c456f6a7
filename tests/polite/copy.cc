// A shared object with a recorder of its own inside. Built twice, with different event types behind
// one shared by both.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "dial9/event.h"
#include "dial9/recorder.h"

DIAL9_EVENT(Shared, (std::uint64_t, number));
#if defined(COPY_IS_A)
DIAL9_EVENT(OnlyA, (std::uint64_t, number), (dial9::text, words));
#else
DIAL9_EVENT(OnlyB, (bool, is_odd), (std::uint32_t, number));
#endif

namespace {
dial9::Recorder g_recorder;
}  // namespace

extern "C" bool copy_start(const char* directory) {
  dial9::RecorderOptions options = dial9::RecorderOptions::disk(directory);
  options.arena_bytes = 2 << 20;
  auto [recorder, status] = dial9::Recorder::start(options);
  g_recorder = std::move(recorder);
  return status.ok();
}

extern "C" void copy_record(std::uint64_t number) {
  dial9::record(Shared{number});
#if defined(COPY_IS_A)
  dial9::record(OnlyA{number, "words of a"});
#else
  dial9::record(OnlyB{number % 2 != 0, static_cast<std::uint32_t>(number)});
#endif
}

extern "C" bool copy_is_recording() { return dial9::is_recording(); }

extern "C" bool copy_stop() {
  const dial9::StopResult result = g_recorder.stop(std::chrono::seconds(60));
  return result.is_complete && result.events_dropped == 0;
}
