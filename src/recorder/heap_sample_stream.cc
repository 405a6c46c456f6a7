// See heap_sample_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/heap_sample_stream.h"

#include "recorder/seen_code.h"

namespace dial9::internal {
namespace {

using format::FieldType;

enum TypeId : std::uint16_t { kAlloc = 1, kFree = 2, kProfile = 3, kOverflow = 4 };

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
      return out.annotations(kFree, {{2, "unit", "bytes"}, {3, "unit", "ns"}});
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
                  {"tracks_live", FieldType::kBool},
                  {"largest_rate_bytes", FieldType::kVarint}});
      return out.annotations(kProfile,
                             {{0, "unit", "ns"}, {1, "unit", "bytes"}, {9, "unit", "bytes"}});
    default:
      return out.schema(
          kOverflow, "MemoryProfileOverflowEvent", true,
          {{"dropped_allocs", FieldType::kVarint}, {"dropped_frees", FieldType::kVarint}});
  }
}

}  // namespace

HeapSampleEncoder::HeapSampleEncoder() : streams_(add_schema) {}

void HeapSampleEncoder::add(const AllocRecord& alloc) {
  format::Encoder& out = streams_.begin(kAlloc, alloc.at_ns);
  out.u32(alloc.tid);
  out.varint(alloc.size);
  out.varint(alloc.address);
  out.pooled_stack(alloc.frames);
  see_code(alloc.frames, FirstFrame::kReturn);
  put_id(out, alloc.task);
  put_id(out, alloc.span);
  put_text(out, alloc.label.name(), alloc.label.has_value());
  put_text(out, alloc.label.value(), alloc.label.has_value());
  out.pooled_string(alloc.unwound_by);
  out.boolean(alloc.is_truncated);
  out.varint(alloc.rate_bytes);
  out.boolean(alloc.is_tracked);
}

void HeapSampleEncoder::add(const FreeRecord& free) {
  format::Encoder& out = streams_.begin(kFree, free.at_ns);
  constexpr std::uint64_t kHeadBytes = 6;  // type, time
  const std::uint64_t before = out.data().size();
  out.u32(free.tid);
  out.varint(free.address);
  out.varint(free.size);
  out.varint(free.alloc_ns);
  free_bytes_ += out.data().size() - before + kHeadBytes;
}

void HeapSampleEncoder::add(const HeapProfileRecord& profile) {
  format::Encoder& out = streams_.begin(kProfile, profile.at_ns);
  for (const std::uint64_t value :
       {profile.elapsed_ns, profile.rate_bytes, profile.samples, profile.frees,
        profile.lost_samples, profile.lost_frees, profile.untracked, profile.live_samples}) {
    out.varint(value);
  }
  out.boolean(profile.tracks_live);
  out.varint(profile.largest_rate_bytes);
  if (profile.lost_samples == 0 && profile.lost_frees == 0 && profile.untracked == 0) return;
  format::Encoder& overflow = streams_.begin(kOverflow, profile.at_ns);
  overflow.varint(profile.lost_samples);
  // A free that nobody will see is one that is lost, to a reader who knows no more than this event.
  overflow.varint(profile.lost_frees + profile.untracked);
}

std::vector<SourceStream> HeapSampleEncoder::take() { return streams_.take(); }

}  // namespace dial9::internal
