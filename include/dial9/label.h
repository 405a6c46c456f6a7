// One name and value that the CPU samples of a scope carry: whose work is this?
// Strongest property: a sample has the label of its own task or thread, or none; never another's.
//
//   dial9::label tenant("tenant", request.tenant());
//   ...   // co_await as you like: the label belongs to the task, and goes with it
//
// Spec: docs/spec/cpu_samples.md, "Labels".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/event.h"

namespace dial9 {

inline constexpr std::size_t kMaxLabelNameBytes = 31;
inline constexpr std::size_t kMaxLabelValueBytes = 79;

// Labels the work of the running task (outside tasks: of this thread) from construction to
// destruction; the innermost one counts. Both texts are copied, and cut at kMaxLabelNameBytes and
// kMaxLabelValueBytes, at the end of a UTF-8 character. Inert if recording was off at its
// construction, or if 16,384 labels are open. A label of a thread also holds for the tasks that it
// runs, unless they have one. Outside tasks it ends on the thread that it began on; elsewhere the
// thread's samples have no label from then on. Neither copied nor moved. Not in signal handlers. No
// lock, no allocation, no system call. Cost: about 20 ns (bench/record); a load and a branch while
// off. While the kernel takes samples (perf's, switches) begin and end record an event each.
class label {
 public:
  label(text name, text value) noexcept {
    if (__builtin_expect(is_recording(), 0)) begin(name, value);
  }
  ~label() {
    if (__builtin_expect(word_ != 0, 0)) end();
  }
  label(const label&) = delete;
  label& operator=(const label&) = delete;

 private:
  void begin(text name, text value) noexcept;
  void end() noexcept;
  void end_astray() noexcept;

  std::uint64_t word_ = 0;    // 0: not labelled, and nothing below is set
  std::uint64_t before_ = 0;  // the label around
  std::uint64_t task_ = 0;    // 0: of the thread
};

}  // namespace dial9
