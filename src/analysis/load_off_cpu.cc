// Handlers for waits off the CPU, the connections that they wait for, and threads' times. A wait
// is a row of its own, and in a poll also what that was blocked in.
// Spec: docs/spec/off_cpu_samples.md, "Events".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "analysis/counts.h"
#include "analysis/loader_impl.h"

namespace dial9::analysis {

using format::Event;

namespace {

constexpr std::uint64_t kNoFd = ~std::uint64_t{0};

// "recv(fd 12, peer 10.0.0.7:6379)"
std::string wait_text(std::string_view call, std::uint64_t fd, std::string_view peer) {
  std::string text(call);
  if (fd != kNoFd) {
    text += "(fd " + std::to_string(fd);
    text += peer.empty() ? ")" : ", peer " + std::string(peer) + ")";
  }
  return text;
}

}  // namespace

NameId Loader::Impl::wait_name(const Event& event, std::int16_t call, std::int16_t fd,
                               std::int16_t peer) {
  const NameId name = text(event, call);
  if (name == kNoName) {
    return kNoName;
  }
  const NameId other = text(event, peer);
  const std::string what = wait_text(trace_.names.text(name), number(event, fd, kNoFd),
                                     other == kNoName ? "" : trace_.names.text(other));
  charge(what.size());
  return trace_.names.intern(what);
}

void Loader::Impl::on_off_cpu(const Event& event, const Plan& plan) {
  constexpr std::uint64_t kPreemptedReason = 1;
  OffCpuWait wait;
  wait.at_ns = event.timestamp_ns;
  wait.tid = number32(event, plan.field[0], 0);
  const std::uint64_t duration_ns = number(event, plan.field[1], 0);
  wait.is_preempted = number(event, plan.field[2], 0) == kPreemptedReason;
  wait.runnable_ns =
      wait.is_preempted ? 0 : std::min(number(event, plan.field[18], 0), duration_ns);
  wait.proven_ns = duration_ns - wait.runnable_ns;
  wait.stack = stack(event, plan.field[3]);
  wait.is_parked = number(event, plan.field[4], 0) != 0;
  wait.task_id = identity(event, plan.field[5], kUnknownId);
  wait.call = wait_name(event, plan.field[6], plan.field[7], plan.field[8]);
  wait.share_ns = number(event, plan.field[9], 0);
  wait.is_continued = number(event, plan.field[10], 0) != 0;
  wait.thread_name = text(event, plan.field[11]);
  wait.span_id = identity(event, plan.field[12], kUnknownId);
  wait.label_name = text(event, plan.field[13]);
  wait.label_value = text(event, plan.field[14]);
  // Who can tell one of the three can tell all: what is absent is then none.
  wait.is_label_known =
      wait.label_name != kNoName || wait.task_id != kUnknownId || wait.span_id != kUnknownId;
  for (std::uint64_t* id : {&wait.task_id, &wait.span_id}) {
    *id = wait.is_label_known && *id == kUnknownId ? 0 : *id;
  }
  wait.cause = text(event, plan.field[15]);
  wait.is_truncated = number(event, plan.field[16], 0) != 0;
  wait.is_exact = number(event, plan.field[17], 0) != 0;
  wait.unwound = unwound_by(trace_.names.text(text(event, plan.field[19])),
                            number(event, plan.field[20], 0) != 0);
  trace_.off_cpu.push_back(wait);
  touch(sum_of(wait.at_ns, duration_ns));
  if (wait.is_parked) {
    return;  // a worker that waits for work is in none of its polls
  }
  const auto add_block = [&](std::uint64_t from_ns, std::uint64_t length_ns, BlockKind kind) {
    Block block;
    block.start_ns = from_ns;
    block.duration_ns = length_ns;
    block.kind = kind;
    block.tid = wait.tid;
    block.call = wait.call;
    block.stack = wait.stack;
    blocks_.push_back(block);
    block_task_ids_.push_back(wait.task_id == kUnknownId ? 0 : wait.task_id);
  };
  add_block(wait.at_ns, wait.proven_ns,
            wait.is_preempted ? BlockKind::kPreempted : BlockKind::kOffCpu);
  if (wait.runnable_ns != 0) {
    add_block(sum_of(wait.at_ns, wait.proven_ns), wait.runnable_ns, BlockKind::kPreempted);
  }
}

void Loader::Impl::on_thread_times(const Event& event, const Plan& plan) {
  ThreadTime time;
  time.at_ns = event.timestamp_ns;
  time.tid = number32(event, plan.field[0], 0);
  time.thread_name = text(event, plan.field[1]);
  time.elapsed_ns = number(event, plan.field[2], 0);
  time.running_ns = number(event, plan.field[3], 0);
  time.runnable_ns = number(event, plan.field[4], 0);
  time.blocked_ns = number(event, plan.field[5], 0);
  time.seen_ns = number(event, plan.field[6], 0);
  time.share_ns = number(event, plan.field[7], 0);
  time.is_exact = number(event, plan.field[8], 0) != 0;
  trace_.thread_times.push_back(time);
}

void Loader::Impl::on_socket_wait(const Event& event, const Plan& plan) {
  SocketWait wait;
  wait.at_ns = event.timestamp_ns;
  wait.tid = number32(event, plan.field[0], 0);
  wait.thread_name = text(event, plan.field[1]);
  wait.task_id = identity(event, plan.field[2], kUnknownId);
  wait.span_id = identity(event, plan.field[3], kUnknownId);
  wait.call = wait_name(event, plan.field[4], plan.field[5], plan.field[6]);
  wait.waited_ns = number(event, plan.field[7], 0);
  wait.tcp_state = number32(event, plan.field[8], 0);
  wait.rtt_ns = number(event, plan.field[9], kUnknownNs);
  wait.rtt_var_ns = number(event, plan.field[10], kUnknownNs);
  wait.retransmits = number32(event, plan.field[11], 0);
  wait.total_retransmits = number32(event, plan.field[12], 0);
  wait.unacked_segments = number32(event, plan.field[13], 0);
  wait.lost_segments = number32(event, plan.field[14], 0);
  wait.since_received_ns = number(event, plan.field[15], kUnknownNs);
  wait.since_sent_ns = number(event, plan.field[16], kUnknownNs);
  wait.unread_bytes = number(event, plan.field[17], kUnknownNs);
  wait.unsent_bytes = number(event, plan.field[18], kUnknownNs);
  trace_.socket_waits.push_back(wait);
  touch(wait.at_ns);
}

}  // namespace dial9::analysis
