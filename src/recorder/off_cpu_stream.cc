// See off_cpu_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/off_cpu_stream.h"

#include <algorithm>
#include <utility>

#include "format/encoder.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{64} << 10;

enum TypeId : std::uint16_t { kWait = 1, kTimes = 2, kProfile = 3 };

void add_wait_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kWait, "OffCpuEvent", true,
             {{"tid", FieldType::kU32},
              {"duration_ns", FieldType::kVarint},
              {"reason", FieldType::kU8},
              {"callchain", FieldType::kPooledStackFrames, true},
              {"share_ns", FieldType::kVarint},
              {"continued", FieldType::kBool},
              {"parked", FieldType::kBool},
              {"thread_name", FieldType::kPooledString, true},
              {"task_id", FieldType::kVarint, true},
              {"span_id", FieldType::kVarint, true},
              {"label_name", FieldType::kPooledString, true},
              {"label_value", FieldType::kPooledString, true},
              {"call", FieldType::kPooledString, true},
              {"cause", FieldType::kPooledString, true},
              {"fd", FieldType::kVarint, true},
              {"peer", FieldType::kPooledString, true},
              {"object", FieldType::kVarint, true},
              {"unwound_by", FieldType::kPooledString, true},
              {"truncated", FieldType::kBool},
              {"guessed", FieldType::kBool}});
  out.annotations(kWait, {{1, "unit", "ns"}, {4, "unit", "ns"}});
}

void add_times_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kTimes, "ThreadTimesEvent", true,
             {{"tid", FieldType::kU32},
              {"thread_name", FieldType::kPooledString, true},
              {"elapsed_ns", FieldType::kVarint},
              {"running_ns", FieldType::kVarint},
              {"runnable_ns", FieldType::kVarint},
              {"blocked_ns", FieldType::kVarint},
              {"seen_ns", FieldType::kVarint},
              {"share_ns", FieldType::kVarint}});
  out.annotations(kTimes, {{2, "unit", "ns"},
                           {3, "unit", "ns"},
                           {4, "unit", "ns"},
                           {5, "unit", "ns"},
                           {6, "unit", "ns"},
                           {7, "unit", "ns"}});
}

void add_profile_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kProfile, "OffCpuProfileEvent", true,
             {{"elapsed_ns", FieldType::kVarint},
              {"threads", FieldType::kU32},
              {"threads_unsampled", FieldType::kU32},
              {"looks", FieldType::kVarint},
              {"stacks", FieldType::kVarint},
              {"moved", FieldType::kVarint},
              {"unreadable", FieldType::kVarint},
              {"lost", FieldType::kVarint},
              {"round_ns", FieldType::kVarint}});
  out.annotations(kProfile, {{0, "unit", "ns"}, {8, "unit", "ns"}});
}

void put_number(format::Encoder& out, std::optional<std::uint64_t> value) {
  if (!value) return out.absent();
  out.present();
  out.varint(*value);
}

void put_id(format::Encoder& out, std::uint64_t id) {
  put_number(out, id == 0 ? std::nullopt : std::optional(id));
}

void put_text(format::Encoder& out, std::string_view text, bool is_present) {
  if (!is_present) return out.absent();
  out.present();
  out.pooled_string(text);
}

void put_text(format::Encoder& out, std::string_view text) { put_text(out, text, !text.empty()); }

}  // namespace

struct OffCpuEncoder::State {
  format::Encoder out;
  StreamInfo info;
  bool has_schemas = false;
  std::vector<SourceStream> done;
};

OffCpuEncoder::OffCpuEncoder() : state_(std::make_unique<State>()) {}
OffCpuEncoder::~OffCpuEncoder() = default;

void OffCpuEncoder::count(std::uint64_t at_ns) {
  StreamInfo& info = state_->info;
  info.first_ns = info.events == 0 ? at_ns : std::min(info.first_ns, at_ns);
  info.last_ns = std::max(info.last_ns, at_ns);
  ++info.events;
  if (state_->out.data().size() >= kStreamBytes) close();
}

void OffCpuEncoder::close() {
  if (state_->info.events == 0) return;
  state_->done.push_back({state_->out.take(), state_->info});
  state_->info = {};
  state_->has_schemas = false;
}

namespace {

void add_schemas(format::Encoder& out, bool& has_schemas) {
  if (std::exchange(has_schemas, true)) return;
  add_wait_schema(out);
  add_times_schema(out);
  add_profile_schema(out);
}

}  // namespace

void OffCpuEncoder::add(const OffCpuRecord& wait) {
  format::Encoder& out = state_->out;
  add_schemas(out, state_->has_schemas);
  out.begin(kWait, wait.at_ns);
  out.u32(wait.tid);
  out.varint(wait.seen_ns);
  out.u8(0);
  if (wait.frames.empty()) {
    out.absent();
  } else {
    out.present();
    out.pooled_stack(wait.frames);
  }
  out.varint(wait.share_ns);
  out.boolean(wait.is_continued);
  out.boolean(wait.is_parked);
  put_text(out, wait.thread_name);
  put_id(out, wait.task);
  put_id(out, wait.span);
  put_text(out, wait.label.name(), wait.label.has_value());
  put_text(out, wait.label.value(), wait.label.has_value());
  put_text(out, wait.call);
  put_text(out, wait.cause);
  put_number(out, wait.fd);
  put_text(out, wait.address);
  put_number(out, wait.object);
  put_text(out, wait.unwound_by);
  out.boolean(wait.is_truncated);
  out.boolean(wait.has_guessed_fp);
  count(wait.at_ns);
}

void OffCpuEncoder::add(const ThreadTimesRecord& times) {
  format::Encoder& out = state_->out;
  add_schemas(out, state_->has_schemas);
  out.begin(kTimes, times.at_ns);
  out.u32(times.tid);
  put_text(out, times.thread_name);
  for (const std::uint64_t value : {times.elapsed_ns, times.running_ns, times.runnable_ns,
                                    times.blocked_ns, times.seen_ns, times.share_ns}) {
    out.varint(value);
  }
  count(times.at_ns);
}

void OffCpuEncoder::add(const OffCpuProfileRecord& profile) {
  format::Encoder& out = state_->out;
  add_schemas(out, state_->has_schemas);
  out.begin(kProfile, profile.at_ns);
  out.varint(profile.elapsed_ns);
  out.u32(profile.threads);
  out.u32(profile.threads_unsampled);
  for (const std::uint64_t value : {profile.looks, profile.stacks, profile.moved,
                                    profile.unreadable, profile.lost, profile.round_ns}) {
    out.varint(value);
  }
  count(profile.at_ns);
}

std::vector<SourceStream> OffCpuEncoder::take() {
  close();
  return std::exchange(state_->done, {});
}

}  // namespace dial9::internal
