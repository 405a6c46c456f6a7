// What belongs to the process rather than to one recorder: the running recorder and the periodic
// sources. Strongest property: one short lock, taken around a fork too, so that
// the child finds it whole; never held while a callback or the kernel works.
// Spec: docs/spec/recorder.md, "Life of a recorder".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dial9/recorder.h"

namespace dial9::internal {

class RecorderCore;

// Claims the process for `core`. Fails, naming the recorder that runs.
Status claim_process(const std::shared_ptr<RecorderCore>& core, const std::string& description);
void release_process(const RecorderCore* core);

// --- Sources ------------------------------------------------------------------------------------
enum class SourcePace : std::uint8_t {
  kAlways,     // on time, also when nothing else happens
  kWhileBusy,  // on time while the host records; else whenever the collector wakes anyway
};
Status add_paced_source(const std::string& name, std::chrono::nanoseconds period, SourcePace pace,
                        std::function<void()> sample);

struct SourceRun {
  std::uint64_t next_always_ns;  // when the next kAlways source is due; max: never
  std::uint64_t next_busy_ns;    // the same with the others
};
// Calls what is due at `now_ns`; `clock` times the calls. The collector's thread only.
SourceRun run_due_sources(std::uint64_t now_ns, const std::function<std::uint64_t()>& clock);
std::uint64_t source_failures();
// A recorder starts: what sources record counts from here.
void reset_source_counts();
std::vector<SourceStatus> source_statuses();

}  // namespace dial9::internal
