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

}  // namespace dial9::internal
