// See cpu_trace.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/cpu_trace.h"

namespace dial9::analysis::testing {

using format::FieldType;

void CpuTrace::add(const MadeSample& sample) {
  format::Encoder& out = builder.encoder();
  out.schema(110, "CpuSampleEvent", true,
             {{"tid", FieldType::kU32},
              {"source", FieldType::kU8},
              {"thread_name", FieldType::kPooledString},
              {"callchain", FieldType::kPooledStackFrames},
              {"weight", FieldType::kVarint},
              {"task_id", FieldType::kVarint, true},
              {"span_id", FieldType::kVarint, true},
              {"label_name", FieldType::kPooledString, true},
              {"label_value", FieldType::kPooledString, true},
              {"truncated", FieldType::kBool},
              {"unwound_by", FieldType::kPooledString, true},
              {"has_context", FieldType::kBool}});
  out.begin(110, sample.at_ns);
  out.u32(sample.tid);
  out.u8(sample.is_switch ? 1 : 0);
  out.pooled_string(sample.thread);
  out.pooled_stack(sample.frames);
  out.varint(sample.weight);
  for (const std::uint64_t id : {sample.task, sample.span}) {
    if (id == 0) {
      out.absent();
    } else {
      out.present();
      out.varint(id);
    }
  }
  for (const std::string& text : {std::string("tenant"), sample.label}) {
    if (sample.label.empty()) {
      out.absent();
    } else {
      out.present();
      out.pooled_string(text);
    }
  }
  out.boolean(sample.is_truncated);
  sample.unwound_by.empty() ? out.absent() : (out.present(), out.pooled_string(sample.unwound_by));
  out.boolean(sample.has_context);
}

void CpuTrace::module(const std::string& path, std::uint64_t begin, std::uint64_t since_ns,
                      std::uint64_t before_ns, std::uint64_t epoch, const std::string& build_id) {
  format::Encoder& out = builder.encoder();
  out.schema(111, "ModuleEvent", true,
             {{"path", FieldType::kString},
              {"build_id", FieldType::kString},
              {"begin", FieldType::kVarint},
              {"end", FieldType::kVarint},
              {"bias", FieldType::kVarint},
              {"epoch", FieldType::kVarint},
              {"since_ns", FieldType::kVarint},
              {"before_held_ns", FieldType::kVarint},
              {"only_added", FieldType::kBool}});
  out.begin(111, since_ns);
  out.string(path);
  out.string(build_id);
  for (const std::uint64_t value : {begin, begin + 1'000, begin, epoch, since_ns, before_ns}) {
    out.varint(value);
  }
  out.boolean(false);
}

void CpuTrace::books(std::uint64_t at_ns, std::uint32_t hz, std::uint64_t cpu_ns,
                     std::uint64_t periods, std::uint64_t lost) {
  format::Encoder& out = builder.encoder();
  out.schema(112, "CpuProfileEvent", true,
             {{"cpu_ns", FieldType::kVarint},
              {"asked_hz", FieldType::kU32},
              {"periods", FieldType::kVarint},
              {"lost", FieldType::kVarint}});
  out.begin(112, at_ns);
  out.varint(cpu_ns);
  out.u32(hz);
  out.varint(periods);
  out.varint(lost);
}

}  // namespace dial9::analysis::testing
