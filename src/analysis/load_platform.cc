// Handlers for what the machine and the kernel say of a process: accept queues, platform stalls.
// Spec: docs/spec/events_ours.md, "Accept queues", "Platform stalls".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "analysis/loader_impl.h"
#include "base/stable_sort.h"

namespace dial9::analysis {

using format::Event;

// Null: there are too many already.
AcceptQueue* Loader::Impl::accept_queue(std::uint64_t cookie, std::uint64_t inode,
                                        const std::string& address) {
  const auto known = accept_queue_of_.find(cookie);
  if (known != accept_queue_of_.end()) {
    return &trace_.accept_queues[known->second];
  }
  if (trace_.accept_queues.size() == kMostAcceptQueues) {
    return nullptr;
  }
  const auto number = static_cast<std::uint32_t>(trace_.accept_queues.size());
  accept_queue_of_.emplace(cookie, number);
  AcceptQueue& made = trace_.accept_queues.emplace_back();
  made.cookie = cookie;
  made.address = trace_.names.intern(address);
  // Several sockets may share an address, each with a queue of its own.
  if (!listener_at_.try_emplace(made.address, cookie).second) {
    made.address = trace_.names.intern(address + " (socket " + std::to_string(inode) + ")");
  }
  return &made;
}

void Loader::Impl::on_accept_queue(const Event& event, const Plan& plan) {
  constexpr std::size_t kMostAddressBytes = 64;
  const std::uint64_t pending = number(event, plan.field[4], kUnknownNs);
  const std::uint64_t backlog = number(event, plan.field[5], kUnknownNs);
  if (pending > ~std::uint32_t{0} || backlog > ~std::uint32_t{0}) {
    return;
  }
  std::string address(trace_.names.text(text(event, plan.field[2])).substr(0, kMostAddressBytes));
  if (number(event, plan.field[7], 4) == 6) {
    address = "[" + address + "]";
  }
  address += ":" + std::to_string(number32(event, plan.field[3], 0));
  AcceptQueue* const queue =
      accept_queue(identity(event, plan.field[0], 0), identity(event, plan.field[1], 0), address);
  if (queue == nullptr) {
    return;
  }
  queue->samples.push_back({event.timestamp_ns, static_cast<std::uint32_t>(pending),
                            static_cast<std::uint32_t>(backlog),
                            number(event, plan.field[6], kUnknownNs)});
  add_sample(queue->address, Series::Kind::kAcceptQueue, event.timestamp_ns,
             static_cast<double>(pending));
}

void Loader::Impl::on_platform_stall(const Event& event, const Plan& plan) {
  PlatformStall stall;
  stall.end_ns = event.timestamp_ns;
  stall.begin_ns = std::min(number(event, plan.field[2], event.timestamp_ns), stall.end_ns);
  const std::string_view cause = trace_.names.text(text(event, plan.field[0]));
  const auto known = std::find(kStallCauses.begin(), kStallCauses.end(), cause);
  if (known != kStallCauses.end()) {
    stall.cause = static_cast<StallCause>(known - kStallCauses.begin());
  }
  stall.scope = text(event, plan.field[1]);
  stall.stalled_ns = number(event, plan.field[3], kUnknownNs);
  stall.full_stalled_ns = number(event, plan.field[4], kUnknownNs);
  stall.step_ns = static_cast<std::int64_t>(identity(event, plan.field[5], 0));
  stall.count = number(event, plan.field[6], 0);
  trace_.platform_stalls.push_back(stall);
  touch(stall.begin_ns);
}

// Sorts the stalls; among them the times in which the process read pages from disk, which the
// counters of its resource usage tell.
void Loader::Impl::build_platform() {
  std::vector<PlatformStall> stalls;
  for (std::size_t i = 0; i < trace_.platform_stalls.size(); ++i) {
    stalls.push_back(trace_.platform_stalls[i]);
    stalls.back().scope = settled(stalls.back().scope);
  }
  for (std::size_t i = 1; i < trace_.resources.size(); ++i) {
    const ResourceSample& before = trace_.resources[i - 1];
    const ResourceSample& sample = trace_.resources[i];
    if (before.major_faults == kUnknownNs || sample.major_faults == kUnknownNs ||
        sample.major_faults <= before.major_faults) {
      continue;
    }
    const std::uint64_t count = sample.major_faults - before.major_faults;
    PlatformStall* const last = stalls.empty() ? nullptr : &stalls.back();
    if (last != nullptr && last->cause == StallCause::kMajorFaults &&
        last->end_ns == before.at_ns) {
      last->end_ns = sample.at_ns;
      last->count += count;
      continue;
    }
    PlatformStall stall;
    stall.cause = StallCause::kMajorFaults;
    stall.scope = trace_.names.intern("process");
    stall.begin_ns = before.at_ns;
    stall.end_ns = sample.at_ns;
    stall.count = count;
    stalls.push_back(stall);
  }
  dial9::stable_sort(
      stalls.begin(), stalls.end(),
      [](const PlatformStall& a, const PlatformStall& b) { return a.begin_ns < b.begin_ns; });
  trace_.platform_stalls = {};
  for (const PlatformStall& stall : stalls) {
    trace_.platform_stalls.push_back(stall);
  }
}

}  // namespace dial9::analysis
