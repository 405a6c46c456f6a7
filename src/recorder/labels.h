// Labels that are open (dial9/label.h), as a signal handler finds them. Strongest property: a
// label is named by its place and its generation, so a word that outlived its label reads as none;
// texts are copied as words and then checked again, so none is torn. No lock anywhere.
//
//   task ─► word in a table ─┐
//   thread-local word ───────┴─► place in the pool: generation (odd: open), name, value
//
// Spec: docs/spec/cpu_samples.md, "Labels".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dial9/label.h"

namespace dial9::internal {

struct LabelText {
  static constexpr std::size_t kWords = 14;
  std::uint8_t name_bytes;  // 0: no label
  std::uint8_t value_bytes;
  char text[kWords * 8 - 2];  // the name, then the value

  bool has_value() const { return name_bytes != 0; }
  std::string_view name() const { return {text, name_bytes}; }
  std::string_view value() const { return {text + name_bytes, value_bytes}; }
};
static_assert(sizeof(LabelText) == LabelText::kWords * 8);
static_assert(kMaxLabelNameBytes + kMaxLabelValueBytes <= sizeof(LabelText::text));

inline constexpr std::size_t kMaxOpenLabels = 16384;

// The label of the task (0: none) on this thread, else of the thread. Async-signal-safe; wait-free.
void read_label(std::uint64_t task, LabelText* label) noexcept;

// The same for a thread whose own word (the thread-local at thread_label_word()) is `thread_word`.
void read_label_of(std::uint64_t task, std::uint64_t thread_word, LabelText* label) noexcept;
const std::uint64_t* thread_label_word() noexcept;

// Tasks of one bucket share the room for so many that are labelled at a time.
inline constexpr std::size_t kLabelTasksPerBucket = 8;
std::size_t label_bucket(std::uint64_t task) noexcept;

// Labels that found no place since the process began.
std::uint64_t labels_dropped() noexcept;

// --- For those who tell of labels (label_changes.h, label_teller.h)

// Was any begun since the process began?
bool has_labels() noexcept;
// The label of the task; 0: of this thread, whatever it works for.
void read_own_label(std::uint64_t task, LabelText* label) noexcept;
// At the thread's end: labels that it leaves open are nobody's. False: it leaves none.
bool end_labels_of_thread() noexcept;

struct OpenLabel {
  std::uint32_t tid = 0;   // of a thread
  std::uint64_t task = 0;  // of a task
  bool is_known = false;   // false: it has one, or more, and which one holds can't be told
  LabelText label{};
};
// False: enough.
using ListLabel = bool (*)(void* self, const OpenLabel& open);
// All that are open, in no order; of a task the one that holds, of a thread each that is open.
// False: not all, since one is changing, or can't be told whose it is. Any thread. Cost: a look at
// 512 KiB, or 2 MiB.
bool list_task_labels(ListLabel list, void* self);
bool list_thread_labels(ListLabel list, void* self);

}  // namespace dial9::internal
