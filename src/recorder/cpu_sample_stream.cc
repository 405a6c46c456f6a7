// See cpu_sample_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/cpu_sample_stream.h"

#include <optional>

#include "recorder/seen_code.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kNoWorker = 255;  // as the ecosystem has it: readers go by the thread

enum TypeId : std::uint16_t { kSample = 1, kProfile = 2 };

void add_sample_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kSample, "CpuSampleEvent", true,
             {{"worker_id", FieldType::kVarint},
              {"tid", FieldType::kU32},
              {"source", FieldType::kU8},
              {"thread_name", FieldType::kPooledString, true},
              {"callchain", FieldType::kPooledStackFrames},
              {"cpu", FieldType::kVarint, true},
              {"weight", FieldType::kVarint, true},
              {"task_id", FieldType::kVarint, true},
              {"span_id", FieldType::kVarint, true},
              {"label_name", FieldType::kPooledString, true},
              {"label_value", FieldType::kPooledString, true},
              {"unwound_by", FieldType::kPooledString},
              {"truncated", FieldType::kBool},
              {"has_context", FieldType::kBool}});
}

void add_profile_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kProfile, "CpuProfileEvent", true,
             {{"elapsed_ns", FieldType::kVarint},
              {"cpu_ns", FieldType::kVarint},
              {"asked_hz", FieldType::kU32},
              {"samples", FieldType::kVarint},
              {"periods", FieldType::kVarint},
              {"lost", FieldType::kVarint},
              {"lost_periods", FieldType::kVarint},
              {"threads", FieldType::kU32},
              {"threads_unsampled", FieldType::kU32}});
  out.annotations(kProfile, {{0, "unit", "ns"}, {1, "unit", "ns"}});
}

void add_schema(format::Encoder& out, std::uint16_t type) {
  type == kSample ? add_sample_schema(out) : add_profile_schema(out);
}

}  // namespace

CpuSampleEncoder::CpuSampleEncoder() : streams_(add_schema) {}

void CpuSampleEncoder::add(const CpuSampleRecord& sample) {
  format::Encoder& out = streams_.begin(kSample, sample.at_ns);
  out.varint(kNoWorker);
  out.u32(sample.tid);
  out.u8(0);
  put_text(out, sample.thread_name);
  out.pooled_stack(sample.frames);
  see_code(sample.frames, FirstFrame::kInterrupted);
  put_optional(
      out, sample.cpu < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(sample.cpu)));
  put_optional(out, sample.weight == 1 ? std::nullopt : std::optional(sample.weight));
  put_id(out, sample.task);
  put_id(out, sample.span);
  put_text(out, sample.label.name(), sample.label.has_value());
  put_text(out, sample.label.value(), sample.label.has_value());
  out.pooled_string(sample.unwound_by);
  out.boolean(sample.is_truncated);
  out.boolean(sample.has_context);
}

void CpuSampleEncoder::add(const CpuProfileRecord& profile) {
  format::Encoder& out = streams_.begin(kProfile, profile.at_ns);
  out.varint(profile.elapsed_ns);
  out.varint(profile.cpu_ns);
  out.u32(profile.asked_hz);
  for (const std::uint64_t value :
       {profile.samples, profile.periods, profile.lost, profile.lost_periods}) {
    out.varint(value);
  }
  out.u32(profile.threads);
  out.u32(profile.threads_unsampled);
}

std::vector<SourceStream> CpuSampleEncoder::take() { return streams_.take(); }

}  // namespace dial9::internal
