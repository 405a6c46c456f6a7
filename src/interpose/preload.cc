// The library for LD_PRELOAD: records a program that knows nothing of dial9, as the DIAL9_
// variables say. Its threads become workers of one runtime when they first wait for events or
// conditions, so their parks and kernel waits show; handlers don't, since nobody names them. Off
// unless DIAL9_ENABLED. A child of a fork records nothing; a program that it executes starts a
// recording of its own. Guide: docs/guide/asio.md, "Programs that can't be rebuilt".
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "dial9/recorder.h"
#include "interpose/wait.h"

namespace {

// Never destroyed: threads may wait in destructors and after main.
alignas(dial9::Recorder) unsigned char g_recorder[sizeof(dial9::Recorder)];
bool g_is_started = false;

__attribute__((constructor)) void start() {
  dial9::EnvRecorder started = dial9::recorder_from_env();
  if (!started.recorder.is_running()) return;
  new (g_recorder) dial9::Recorder(std::move(started.recorder));
  g_is_started = true;
  dial9::interpose::g_auto_runtime.store(
      dial9::runtime::register_runtime(program_invocation_short_name), std::memory_order_relaxed);
}

__attribute__((destructor)) void stop() {
  if (!g_is_started) return;
  dial9::interpose::g_auto_runtime.store(0, std::memory_order_relaxed);
  reinterpret_cast<dial9::Recorder*>(g_recorder)->stop();
}

}  // namespace
