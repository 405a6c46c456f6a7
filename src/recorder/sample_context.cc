// See sample_context.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/sample_context.h"

#include "dial9/internal/span_core.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {

void read_sample_context(SampleContext* context) noexcept {
  // One word, so never half of one task and half of another. The poll's own copy may not be filled
  // yet when this interrupts its beginning.
  context->task = __atomic_load_n(&t_task.id, __ATOMIC_RELAXED);
  const bool is_in_poll = t_state.poll != nullptr;
  context->span = span_sampled(is_in_poll ? context->task : 0);
  read_label(context->task, &context->label);
}

}  // namespace dial9::internal
