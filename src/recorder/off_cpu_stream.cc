// See off_cpu_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/off_cpu_stream.h"

#include "recorder/seen_code.h"

namespace dial9::internal {
namespace {

enum TypeId : std::uint16_t { kWait = 1, kTimes = 2, kProfile = 3, kSocket = 4 };

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
              {"guessed", FieldType::kBool},
              {"exact", FieldType::kBool},
              {"runnable_ns", FieldType::kVarint, true}});
  out.annotations(kWait, {{1, "unit", "ns"}, {4, "unit", "ns"}, {21, "unit", "ns"}});
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
              {"share_ns", FieldType::kVarint},
              {"exact", FieldType::kBool}});
  out.annotations(kTimes, {{2, "unit", "ns"},
                           {3, "unit", "ns"},
                           {4, "unit", "ns"},
                           {5, "unit", "ns"},
                           {6, "unit", "ns"},
                           {7, "unit", "ns"}});
}

void add_socket_schema(format::Encoder& out) {
  using format::FieldType;
  out.schema(kSocket, "SocketWaitEvent", true,
             {{"tid", FieldType::kU32},
              {"thread_name", FieldType::kPooledString, true},
              {"task_id", FieldType::kVarint, true},
              {"span_id", FieldType::kVarint, true},
              {"call", FieldType::kPooledString, true},
              {"fd", FieldType::kVarint, true},
              {"peer", FieldType::kPooledString, true},
              {"socket_cookie", FieldType::kVarint},
              {"waited_ns", FieldType::kVarint},
              {"tcp_state", FieldType::kU8},
              {"rtt_ns", FieldType::kVarint, true},
              {"rtt_var_ns", FieldType::kVarint, true},
              {"retransmits", FieldType::kU32},
              {"total_retransmits", FieldType::kU32},
              {"unacked_segments", FieldType::kU32},
              {"lost_segments", FieldType::kU32},
              {"since_received_ns", FieldType::kVarint, true},
              {"since_sent_ns", FieldType::kVarint, true},
              {"unread_bytes", FieldType::kVarint, true},
              {"unsent_bytes", FieldType::kVarint, true}});
  out.annotations(kSocket, {{8, "unit", "ns"},
                            {10, "unit", "ns"},
                            {11, "unit", "ns"},
                            {16, "unit", "ns"},
                            {17, "unit", "ns"},
                            {18, "unit", "bytes"},
                            {19, "unit", "bytes"}});
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
              {"round_ns", FieldType::kVarint},
              {"switch_threads", FieldType::kU32},
              {"switches_lost", FieldType::kVarint},
              {"sockets_unread", FieldType::kVarint},
              {"unlisted", FieldType::kVarint},
              {"switch_stacks", FieldType::kVarint},
              {"switch_stacks_lost", FieldType::kVarint}});
  out.annotations(kProfile, {{0, "unit", "ns"}, {8, "unit", "ns"}});
}

void add_schema(format::Encoder& out, std::uint16_t type) {
  switch (type) {
    case kWait:
      return add_wait_schema(out);
    case kTimes:
      return add_times_schema(out);
    case kSocket:
      return add_socket_schema(out);
    default:
      return add_profile_schema(out);
  }
}

}  // namespace

OffCpuEncoder::OffCpuEncoder() : streams_(add_schema) {}

void OffCpuEncoder::add(const OffCpuRecord& wait) {
  format::Encoder& out = streams_.begin(kWait, wait.at_ns);
  out.u32(wait.tid);
  out.varint(wait.seen_ns);
  out.u8(wait.is_preempted ? 1 : 0);
  if (wait.frames.empty()) {
    out.absent();
  } else {
    out.present();
    out.pooled_stack(wait.frames);
    see_code(wait.frames, FirstFrame::kInterrupted);
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
  put_optional(out, wait.fd);
  put_text(out, wait.address);
  put_optional(out, wait.object);
  put_text(out, wait.unwound_by);
  out.boolean(wait.is_truncated);
  out.boolean(wait.has_guessed_fp);
  out.boolean(wait.is_exact);
  put_optional(out, wait.runnable_ns);
}

void OffCpuEncoder::add(const SocketWaitRecord& socket, const OffCpuRecord& wait) {
  format::Encoder& out = streams_.begin(kSocket, socket.at_ns);
  out.u32(wait.tid);
  put_text(out, wait.thread_name);
  put_id(out, wait.task);
  put_id(out, wait.span);
  put_text(out, wait.call);
  put_optional(out, wait.fd);
  put_text(out, wait.address);
  out.varint(socket.cookie);
  out.varint(socket.waited_ns);
  out.u8(socket.tcp_state);
  put_id(out, socket.rtt_ns);
  put_id(out, socket.rtt_var_ns);
  out.u32(socket.retransmits);
  out.u32(socket.total_retransmits);
  out.u32(socket.unacked_segments);
  out.u32(socket.lost_segments);
  put_optional(out, socket.since_received_ns);
  put_optional(out, socket.since_sent_ns);
  put_optional(out, socket.unread_bytes);
  put_optional(out, socket.unsent_bytes);
}

void OffCpuEncoder::add(const ThreadTimesRecord& times) {
  format::Encoder& out = streams_.begin(kTimes, times.at_ns);
  out.u32(times.tid);
  put_text(out, times.thread_name);
  for (const std::uint64_t value : {times.elapsed_ns, times.running_ns, times.runnable_ns,
                                    times.blocked_ns, times.seen_ns, times.share_ns}) {
    out.varint(value);
  }
  out.boolean(times.is_exact);
}

void OffCpuEncoder::add(const OffCpuProfileRecord& profile) {
  format::Encoder& out = streams_.begin(kProfile, profile.at_ns);
  out.varint(profile.elapsed_ns);
  out.u32(profile.threads);
  out.u32(profile.threads_unsampled);
  for (const std::uint64_t value : {profile.looks, profile.stacks, profile.moved,
                                    profile.unreadable, profile.lost, profile.round_ns}) {
    out.varint(value);
  }
  out.u32(profile.switch_threads);
  out.varint(profile.switches_lost);
  out.varint(profile.sockets_unread);
  out.varint(profile.unlisted);
  out.varint(profile.switch_stacks);
  out.varint(profile.switch_stacks_lost);
}

std::vector<SourceStream> OffCpuEncoder::take() { return streams_.take(); }

}  // namespace dial9::internal
