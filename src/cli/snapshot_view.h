// A look at another process, put into the engine: what `dial9 snapshot` writes down and `dial9 top`
// shows. Strongest property: the bytes that were loaded are an ordinary trace, the one that
// `snapshot` writes. Spec: docs/spec/snapshot.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/now.h"
#include "analysis/trace.h"
#include "session/target_process.h"

namespace dial9::cli {

struct ProcessView {
  internal::TargetLook look;
  std::vector<std::uint8_t>
      own_stream;                       // what the look adds: clock pair, metadata, losses, threads
  analysis::Trace trace;                // of look.parts and own_stream
  std::uint64_t complete_since_ns = 0;  // NowOptions
  analysis::NowView now;
};

// `max_rows` of each list of tasks and places.
ProcessView make_view(internal::TargetLook look, std::size_t max_rows);

// More tasks may wait, and for longer, than are known to: the history isn't whole, or there are
// some that can't be judged.
bool may_miss_waits(const ProcessView& view);

// A stream with a clock pair of the look's moment, `snapshot.…` metadata, a RecorderLossEvent for
// each loss that no part tells of, and a ThreadStateEvent a thread.
std::vector<std::uint8_t> encode_look(const internal::TargetLook& look);

// The kernel's thread of a worker; null: the records don't say which it is, or it is gone.
const internal::KernelThread* thread_of(const ProcessView& view, const analysis::WorkerNow& worker);
// "sleeping in futex (futex_wait_queue)".
std::string thread_text(const internal::KernelThread& thread);

// Text of a trace or another process, fit for a terminal: valid UTF-8, no control characters.
std::string printable(std::string_view text);
// The place of a task: where it was spawned, else where it was last polled; may be empty.
std::string place_of_task(const ProcessView& view, std::uint32_t task);
// "task 7 session.cc:42", without a place where none is known; "no task" of kNoIndex.
std::string task_name(const ProcessView& view, std::uint32_t task);

}  // namespace dial9::cli
