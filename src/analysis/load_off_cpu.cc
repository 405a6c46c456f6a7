// Handlers for waits off the CPU and for threads' times. A wait is a row of its own, and in a poll
// also what that was blocked in. Spec: docs/spec/off_cpu_samples.md, "Events".
// SPDX-License-Identifier: Apache-2.0
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

void Loader::Impl::on_off_cpu(const Event& event, const Plan& plan) {
  constexpr std::uint64_t kPreemptedReason = 1;
  OffCpuWait wait;
  wait.at_ns = event.timestamp_ns;
  wait.tid = number32(event, plan.field[0], 0);
  wait.proven_ns = number(event, plan.field[1], 0);
  wait.is_preempted = number(event, plan.field[2], 0) == kPreemptedReason;
  wait.stack = stack(event, plan.field[3]);
  wait.is_parked = number(event, plan.field[4], 0) != 0;
  wait.task_id = identity(event, plan.field[5], kUnknownId);
  if (const NameId call = text(event, plan.field[6]); call != kNoName) {
    const NameId peer = text(event, plan.field[8]);
    const std::string what = wait_text(trace_.names.text(call), number(event, plan.field[7], kNoFd),
                                       peer == kNoName ? "" : trace_.names.text(peer));
    charge(what.size());
    wait.call = trace_.names.intern(what);
  }
  wait.share_ns = number(event, plan.field[9], 0);
  wait.is_continued = number(event, plan.field[10], 0) != 0;
  wait.thread_name = text(event, plan.field[11]);
  wait.span_id = identity(event, plan.field[12], kUnknownId);
  wait.label_name = text(event, plan.field[13]);
  wait.label_value = text(event, plan.field[14]);
  wait.cause = text(event, plan.field[15]);
  wait.is_truncated = number(event, plan.field[16], 0) != 0;
  trace_.off_cpu.push_back(wait);
  touch(sum_of(wait.at_ns, wait.proven_ns));
  if (wait.is_parked) {
    return;  // a worker that waits for work is in none of its polls
  }
  Block block;
  block.start_ns = wait.at_ns;
  block.duration_ns = wait.proven_ns;
  block.kind = wait.is_preempted ? BlockKind::kPreempted : BlockKind::kOffCpu;
  block.tid = wait.tid;
  block.call = wait.call;
  block.stack = wait.stack;
  blocks_.push_back(block);
  block_task_ids_.push_back(wait.task_id == kUnknownId ? 0 : wait.task_id);
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
  trace_.thread_times.push_back(time);
}

}  // namespace dial9::analysis
