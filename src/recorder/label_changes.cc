// See label_changes.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/label_changes.h"

#include "recorder/label_teller.h"
#include "recorder/labels.h"
#include "recorder/recording_state.h"

namespace dial9::internal {

constinit std::uint32_t g_label_watchers = 0;
static constinit std::uint32_t g_watch_number = 0;
static constinit std::uint64_t g_unwatched_ns = 0;

std::uint32_t label_watch_number() noexcept {
  return __atomic_load_n(&g_watch_number, __ATOMIC_ACQUIRE);
}

std::uint64_t labels_unwatched_ns() noexcept {
  return __atomic_load_n(&g_unwatched_ns, __ATOMIC_RELAXED);
}

bool watch_labels(LabelWatcher watcher) noexcept {
  if (!require_label_teller()) return false;
  // Who begins or ends a label from now on tells it. What is under way is over by the time that the
  // teller lists what holds (LabelTeller::kGraceNs).
  __atomic_fetch_or(&g_label_watchers, static_cast<std::uint32_t>(watcher), __ATOMIC_SEQ_CST);
  return true;
}

void unwatch_labels(LabelWatcher watcher) noexcept {
  const std::uint32_t own = static_cast<std::uint32_t>(watcher);
  std::uint32_t watchers = __atomic_load_n(&g_label_watchers, __ATOMIC_RELAXED);
  bool is_noted = false;
  do {
    if ((watchers & own) == 0) return;
    // Before it leaves, so that whoever finds the same number knows that nobody had left by then.
    // Release: who sees the number sees the time (pairs with label_watch_number()).
    if (watchers == own && !is_noted) {
      __atomic_store_n(&g_unwatched_ns, now_ns(), __ATOMIC_RELAXED);
      __atomic_fetch_add(&g_watch_number, 1, __ATOMIC_RELEASE);
      is_noted = true;
    }
  } while (!__atomic_compare_exchange_n(&g_label_watchers, &watchers, watchers & ~own, true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
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
