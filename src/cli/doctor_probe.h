// `dial9 doctor`'s trial run: a real recorder with the user's options records a known number of
// events for about a second, is stopped, and what it left is read back and counted. Strongest
// property: it works in a directory of its own and leaves nothing behind.
// Spec: docs/guide/on_call.md, "doctor".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "cli/doctor_checks.h"
#include "dial9/recorder.h"

namespace dial9::cli {

struct ProbeOptions {
  RecorderOptions recorder;  // `directory` is that of the trial, which exists; empty: memory ring
  std::chrono::nanoseconds usage_period{0};  // of the process usage source; 0: off
  bool is_tsc_asked_for = false;
  std::chrono::nanoseconds length = std::chrono::seconds(1);
};

struct ProbeFacts {
  RecordingFacts recording;
  ClockFacts clock;
  LockFacts lock;  // without live_pids
};

// Starts and stops the recorder of this process: call it while there is none.
ProbeFacts run_probe(const ProbeOptions& options);

}  // namespace dial9::cli
