// See heap_sample_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/heap_sample_stream.h"

#include <algorithm>
#include <utility>

#include "format/encoder.h"

namespace dial9::internal {
namespace {

using format::FieldType;

constexpr std::size_t kStreamBytes = std::size_t{64} << 10;

enum TypeId : std::uint16_t { kAlloc = 1, kFree = 2, kProfile = 3, kOverflow = 4, kTypes = 5 };

void add_schema(format::Encoder& out, std::uint16_t type) {
  switch (type) {
    case kAlloc:
      out.schema(kAlloc, "AllocEvent", true,
                 {{"tid", FieldType::kU32},
                  {"size", FieldType::kVarint},
                  {"addr", FieldType::kVarint},
                  {"callchain", FieldType::kPooledStackFrames},
                  {"task_id", FieldType::kVarint, true},
                  {"span_id", FieldType::kVarint, true},
                  {"label_name", FieldType::kPooledString, true},
                  {"label_value", FieldType::kPooledString, true},
                  {"unwound_by", FieldType::kPooledString},
                  {"truncated", FieldType::kBool},
                  {"sample_rate_bytes", FieldType::kVarint},
                  {"tracked", FieldType::kBool}});
      return out.annotations(kAlloc, {{1, "unit", "bytes"}, {10, "unit", "bytes"}});
    case kFree:
      out.schema(kFree, "FreeEvent", true,
                 {{"tid", FieldType::kU32},
                  {"addr", FieldType::kVarint},
                  {"size", FieldType::kVarint},
                  {"alloc_timestamp_ns", FieldType::kVarint}});
      return out.annotations(kFree, {{2, "unit", "bytes"}});
    case kProfile:
      out.schema(kProfile, "HeapProfileEvent", true,
                 {{"elapsed_ns", FieldType::kVarint},
                  {"sample_rate_bytes", FieldType::kVarint},
                  {"samples", FieldType::kVarint},
                  {"frees", FieldType::kVarint},
                  {"lost_samples", FieldType::kVarint},
                  {"lost_frees", FieldType::kVarint},
                  {"untracked", FieldType::kVarint},
                  {"live_samples", FieldType::kVarint},
                  {"tracks_live", FieldType::kBool}});
      return out.annotations(kProfile, {{0, "unit", "ns"}, {1, "unit", "bytes"}});
    default:
      return out.schema(
          kOverflow, "MemoryProfileOverflowEvent", true,
          {{"dropped_allocs", FieldType::kVarint}, {"dropped_frees", FieldType::kVarint}});
  }
}

void put_number(format::Encoder& out, std::uint64_t value) {
  if (value == 0) return out.absent();
  out.present();
  out.varint(value);
}

void put_text(format::Encoder& out, std::string_view text, bool is_present) {
  if (!is_present) return out.absent();
  out.present();
  out.pooled_string(text);
}

}  // namespace

struct HeapSampleEncoder::State {
  format::Encoder out;
  StreamInfo info;
  bool has_schema[kTypes] = {};
  std::vector<SourceStream> done;

  void close() {
    if (info.events == 0) return;
    done.push_back({out.take(), info});
    info = {};
    std::fill(std::begin(has_schema), std::end(has_schema), false);
  }
};

HeapSampleEncoder::HeapSampleEncoder() : state_(std::make_unique<State>()) {}
HeapSampleEncoder::~HeapSampleEncoder() = default;

// Closes what is full, so that the event that begins is whole in one stream.
void HeapSampleEncoder::begin(std::uint16_t type, std::uint64_t at_ns) {
  State& state = *state_;
  if (state.out.data().size() >= kStreamBytes) state.close();
  if (!std::exchange(state.has_schema[type], true)) add_schema(state.out, type);
  state.out.begin(type, at_ns);
  StreamInfo& info = state.info;
  info.first_ns = info.events == 0 ? at_ns : std::min(info.first_ns, at_ns);
  info.last_ns = std::max(info.last_ns, at_ns);
  ++info.events;
}

void HeapSampleEncoder::add(const AllocRecord& alloc) {
  begin(kAlloc, alloc.at_ns);
  format::Encoder& out = state_->out;
  out.u32(alloc.tid);
  out.varint(alloc.size);
  out.varint(alloc.address);
  out.pooled_stack(alloc.frames);
  put_number(out, alloc.task);
  put_number(out, alloc.span);
  put_text(out, alloc.label.name(), alloc.label.has_value());
  put_text(out, alloc.label.value(), alloc.label.has_value());
  out.pooled_string(alloc.unwound_by);
  out.boolean(alloc.is_truncated);
  out.varint(alloc.rate_bytes);
  out.boolean(alloc.is_tracked);
}

void HeapSampleEncoder::add(const FreeRecord& free) {
  begin(kFree, free.at_ns);
  format::Encoder& out = state_->out;
  out.u32(free.tid);
  out.varint(free.address);
  out.varint(free.size);
  out.varint(free.alloc_ns);
}

void HeapSampleEncoder::add(const HeapProfileRecord& profile) {
  begin(kProfile, profile.at_ns);
  format::Encoder& out = state_->out;
  for (const std::uint64_t value :
       {profile.elapsed_ns, profile.rate_bytes, profile.samples, profile.frees,
        profile.lost_samples, profile.lost_frees, profile.untracked, profile.live_samples}) {
    out.varint(value);
  }
  out.boolean(profile.tracks_live);
  if (profile.lost_samples == 0 && profile.lost_frees == 0 && profile.untracked == 0) return;
  begin(kOverflow, profile.at_ns);
  out.varint(profile.lost_samples);
  // A free that nobody will see is one that is lost, to a reader who knows no more than this event.
  out.varint(profile.lost_frees + profile.untracked);
}

std::vector<SourceStream> HeapSampleEncoder::take() {
  state_->close();
  return std::exchange(state_->done, {});
}

}  // namespace dial9::internal
