// See heap_trace.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/heap_trace.h"

namespace dial9::analysis::testing {

using format::FieldType;

void HeapTrace::alloc(const MadeAlloc& made) {
  auto& out = builder_.encoder();
  out.schema(100, "AllocEvent", true,
             {{"tid", FieldType::kU32},
              {"size", FieldType::kVarint},
              {"addr", FieldType::kVarint},
              {"callchain", FieldType::kPooledStackFrames},
              {"task_id", FieldType::kVarint, true},
              {"span_id", FieldType::kVarint, true},
              {"label_name", FieldType::kPooledString, true},
              {"label_value", FieldType::kPooledString, true},
              {"truncated", FieldType::kBool},
              {"unwound_by", FieldType::kPooledString, true},
              {"sample_rate_bytes", FieldType::kVarint},
              {"tracked", FieldType::kBool}});
  out.begin(100, made.at_ns);
  out.u32(made.tid);
  out.varint(made.size);
  out.varint(made.addr);
  out.pooled_stack(made.frames);
  for (const std::uint64_t id : {made.task, made.span}) {
    id == 0 ? out.absent() : (out.present(), out.varint(id));
  }
  for (const std::string_view text : {std::string_view("tenant"), made.label_value}) {
    made.label_value.empty() ? out.absent() : (out.present(), out.pooled_string(text));
  }
  out.boolean(made.is_truncated);
  made.unwound_by.empty() ? out.absent() : (out.present(), out.pooled_string(made.unwound_by));
  out.varint(made.rate);
  out.boolean(made.is_tracked);
}

void HeapTrace::free(std::uint64_t at_ns, std::uint64_t addr, std::uint64_t alloc_ns) {
  auto& out = builder_.encoder();
  out.schema(101, "FreeEvent", true,
             {{"tid", FieldType::kU32},
              {"addr", FieldType::kVarint},
              {"size", FieldType::kVarint},
              {"alloc_timestamp_ns", FieldType::kVarint}});
  out.begin(101, at_ns);
  out.u32(1);
  out.varint(addr);
  out.varint(100);
  out.varint(alloc_ns);
}

void HeapTrace::profile(std::uint64_t at_ns, std::uint64_t lost_samples, std::uint64_t lost_frees,
                        std::uint64_t live_samples, std::uint64_t largest_rate,
                        std::uint64_t rate) {
  auto& out = builder_.encoder();
  out.schema(102, "HeapProfileEvent", true,
             {{"elapsed_ns", FieldType::kVarint},
              {"lost_samples", FieldType::kVarint},
              {"lost_frees", FieldType::kVarint},
              {"untracked", FieldType::kVarint},
              {"live_samples", FieldType::kVarint},
              {"tracks_live", FieldType::kBool},
              {"sample_rate_bytes", FieldType::kVarint},
              {"largest_rate_bytes", FieldType::kVarint}});
  out.begin(102, at_ns);
  out.varint(1'000'000);
  out.varint(lost_samples);
  out.varint(lost_frees);
  out.varint(0);
  out.varint(live_samples);
  out.boolean(true);
  out.varint(rate);
  out.varint(largest_rate);
}

}  // namespace dial9::analysis::testing
