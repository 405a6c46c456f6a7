// See cpu_sample_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/cpu_sample_stream.h"

#include <algorithm>
#include <utility>

#include "format/encoder.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{64} << 10;
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

void put_number(format::Encoder& out, std::uint64_t value, bool is_present) {
  if (!is_present) return out.absent();
  out.present();
  out.varint(value);
}

void put_text(format::Encoder& out, std::string_view text, bool is_present) {
  if (!is_present) return out.absent();
  out.present();
  out.pooled_string(text);
}

}  // namespace

struct CpuSampleEncoder::State {
  format::Encoder out;
  StreamInfo info;
  bool has_sample_schema = false;
  bool has_profile_schema = false;
  std::vector<SourceStream> done;
};

CpuSampleEncoder::CpuSampleEncoder() : state_(std::make_unique<State>()) {}
CpuSampleEncoder::~CpuSampleEncoder() = default;

void CpuSampleEncoder::count(std::uint64_t at_ns) {
  StreamInfo& info = state_->info;
  info.first_ns = info.events == 0 ? at_ns : std::min(info.first_ns, at_ns);
  info.last_ns = std::max(info.last_ns, at_ns);
  ++info.events;
  if (state_->out.data().size() >= kStreamBytes) close();
}

void CpuSampleEncoder::close() {
  if (state_->info.events == 0) return;
  state_->done.push_back({state_->out.take(), state_->info});
  state_->info = {};
  state_->has_sample_schema = state_->has_profile_schema = false;
}

void CpuSampleEncoder::add(const CpuSampleRecord& sample) {
  format::Encoder& out = state_->out;
  if (!std::exchange(state_->has_sample_schema, true)) add_sample_schema(out);
  out.begin(kSample, sample.at_ns);
  out.varint(kNoWorker);
  out.u32(sample.tid);
  out.u8(0);
  put_text(out, sample.thread_name, !sample.thread_name.empty());
  out.pooled_stack(sample.frames);
  put_number(out, static_cast<std::uint64_t>(sample.cpu), sample.cpu >= 0);
  put_number(out, sample.weight, sample.weight != 1);
  put_number(out, sample.task, sample.task != 0);
  put_number(out, sample.span, sample.span != 0);
  put_text(out, sample.label.name(), sample.label.has_value());
  put_text(out, sample.label.value(), sample.label.has_value());
  out.pooled_string(sample.unwound_by);
  out.boolean(sample.is_truncated);
  out.boolean(sample.has_context);
  count(sample.at_ns);
}

void CpuSampleEncoder::add(const CpuProfileRecord& profile) {
  format::Encoder& out = state_->out;
  if (!std::exchange(state_->has_profile_schema, true)) add_profile_schema(out);
  out.begin(kProfile, profile.at_ns);
  out.varint(profile.elapsed_ns);
  out.varint(profile.cpu_ns);
  out.u32(profile.asked_hz);
  for (const std::uint64_t value :
       {profile.samples, profile.periods, profile.lost, profile.lost_periods}) {
    out.varint(value);
  }
  out.u32(profile.threads);
  out.u32(profile.threads_unsampled);
  count(profile.at_ns);
}

std::vector<SourceStream> CpuSampleEncoder::take() {
  close();
  return std::exchange(state_->done, {});
}

}  // namespace dial9::internal
