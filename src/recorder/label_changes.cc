// See label_changes.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/label_changes.h"

#include "recorder/label_teller.h"
#include "recorder/labels.h"
#include "recorder/recording_state.h"

namespace dial9::internal {

constinit std::uint32_t g_label_watch = 0;

namespace {

constexpr std::uint32_t kOneLeft = kAllLabelWatchers + 1;

// Of the watchers of a number, and of those after them.
constinit std::uint64_t g_unwatched_ns[2] = {};

std::uint32_t number_of(std::uint32_t watch) { return watch / kOneLeft; }

}  // namespace

LabelWatch label_watch() noexcept {
  const std::uint32_t watch = __atomic_load_n(&g_label_watch, __ATOMIC_ACQUIRE);
  return {(watch & kAllLabelWatchers) != 0, number_of(watch)};
}

std::uint64_t labels_unwatched_ns(std::uint32_t number) noexcept {
  const std::uint32_t next = number_of(number * kOneLeft + kOneLeft);
  if (label_watch().number != next) return 0;
  // Acquire: whoever finds here what a later watcher left finds a later number then.
  const std::uint64_t at_ns = __atomic_load_n(&g_unwatched_ns[number % 2], __ATOMIC_ACQUIRE);
  return label_watch().number == next ? at_ns : 0;
}

bool watch_labels(LabelWatcher watcher) noexcept {
  if (!require_label_teller()) return false;
  // Who begins or ends a label from now on tells it. What is under way is over by the time that the
  // teller lists what holds (LabelTeller::kGraceNs).
  __atomic_fetch_or(&g_label_watch, static_cast<std::uint32_t>(watcher), __ATOMIC_SEQ_CST);
  return true;
}

void unwatch_labels(LabelWatcher watcher) noexcept {
  const std::uint32_t own = static_cast<std::uint32_t>(watcher);
  std::uint32_t watch = __atomic_load_n(&g_label_watch, __ATOMIC_ACQUIRE);
  std::uint32_t without = 0;
  do {
    if ((watch & own) == 0) return;
    without = watch & ~own;
    if ((without & kAllLabelWatchers) == 0) {
      // Before it leaves: who sees the number sees the time. No other watcher writes there, since
      // the number stays while this one is there.
      __atomic_store_n(&g_unwatched_ns[number_of(watch) % 2], now_ns(), __ATOMIC_RELEASE);
      without += kOneLeft;
    }
  } while (!__atomic_compare_exchange_n(&g_label_watch, &watch, without, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_ACQUIRE));
}

void tell_label(std::uint64_t task) noexcept {
  const std::uint64_t at_ns = now_ns();
  signal_fence();
  LabelText label;
  read_own_label(task, &label);
  LabelChangeEvent event{};
  event.tid = this_tid();
  event.task_id = task;
  // Of a thread whose end nobody sees, another one of the same id may be next.
  event.known = task != 0 || watch_thread_exit();
  if (label.has_value()) {
    event.label_name = interned(label.name());
    event.label_value = interned(label.value());
  }
  record_at(event, at_ns);
}

void tell_label_unknown(std::uint32_t tid) noexcept {
  LabelChangeEvent event{};
  event.tid = tid;
  record(event);
}

void tell_end_of_thread() noexcept {
  if (!end_labels_of_thread() || !are_labels_watched()) return;
  LabelChangeEvent event{};
  event.tid = this_tid();
  event.known = true;
  record(event);
}

}  // namespace dial9::internal
