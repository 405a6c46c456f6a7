// See thread_words.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/thread_words.h"

#include <array>
#include <bit>

#include "dial9/internal/span_core.h"
#include "recorder/labels.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {

std::uint64_t own_thread_pointer() noexcept {
  return std::bit_cast<std::uint64_t>(__builtin_thread_pointer());
}

bool read_foreign_context(std::uint64_t base, std::uint32_t tid, CopyWords copy, void* self,
                          ForeignContext* context) noexcept {
  ThreadState state;
  runtime::TaskRef task{};
  std::uint64_t label = 0;
  ThreadSpans spans{};
  const std::uint64_t own_base = own_thread_pointer();
  const auto part = [&](const void* own, void* to, std::size_t bytes) {
    return ThreadWordPart{base + (std::bit_cast<std::uint64_t>(own) - own_base), to, bytes};
  };
  const std::array<ThreadWordPart, 4> parts{{
      part(&t_state, &state, sizeof state),
      part(&t_task, &task, sizeof task),
      part(thread_label_word(), &label, sizeof label),
      part(&t_spans, &spans, sizeof spans),
  }};
  if (!copy(self, parts)) return false;
  // A thread knows its id once it was asked for: another's words would show here.
  if (state.tid != 0 && state.tid != tid) return false;
  context->is_parked = state.is_parked;
  context->sample.task = task.id;
  const bool is_in_task = state.poll != nullptr && task.id != 0;
  context->sample.span = is_in_task                        ? span_sampled(task.id)
                         : spans.depth <= kThreadSpanDepth ? spans.innermost()
                                                           : 0;
  read_label_of(task.id, label, &context->sample.label);
  return true;
}

}  // namespace dial9::internal
