// Labels as they begin and end, told as events while some source asks for it: one whose samples are
// taken by the kernel, which can't ask the thread for its label. Strongest property: an event tells
// what holds from its stamp on, read after the stamp was taken: whatever threads change the label
// of a task at a time, the last event has the last label.
// Spec: docs/spec/cpu_samples.md, "Labels of what the kernel samples".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/event.h"

namespace dial9::internal {

DIAL9_EVENT(LabelChangeEvent, (std::uint32_t, tid), (std::uint64_t, task_id), (bool, known),
            (optional<interned>, label_name), (optional<interned>, label_value));

// Who asks. Each says so for itself.
enum class LabelWatcher : std::uint32_t { kCpuSamples = 1, kSwitches = 2 };
inline constexpr std::uint32_t kAllLabelWatchers = 3;
// The watchers in the lowest bits; above them how often the last one has left. One word, so that
// nobody sees watchers with the number of those before or after them.
extern std::uint32_t g_label_watch;

struct LabelWatch {
  bool is_on;
  std::uint32_t number;  // rises as the last one leaves: what changes from then on isn't told
};
LabelWatch label_watch() noexcept;
// When the last of the watchers of that number left, by the recorder's clock; it was a little
// later, never before. 0: some watch still, or others have come and left since, and it isn't known.
std::uint64_t labels_unwatched_ns(std::uint32_t number) noexcept;

// Labels are told from the next change on, and what holds is told by the collector (LabelTeller).
// False: they can't be. Any thread; not in a signal handler.
bool watch_labels(LabelWatcher watcher) noexcept;
void unwatch_labels(LabelWatcher watcher) noexcept;

inline bool are_labels_watched() noexcept {
  return (__atomic_load_n(&g_label_watch, __ATOMIC_RELAXED) & kAllLabelWatchers) != 0;
}

// After a change on the calling thread: the label that the task has, or (0) this thread.
[[gnu::cold]] void tell_label(std::uint64_t task) noexcept;
// What label another thread has isn't known from now on, until it tells.
[[gnu::cold]] void tell_label_unknown(std::uint32_t tid) noexcept;
// The calling thread ends, and with it its labels.
void tell_end_of_thread() noexcept;

}  // namespace dial9::internal
