// Handlers for what the machine and the kernel say of a process: accept queues.
// Spec: docs/spec/events_ours.md, "Accept queues".
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "analysis/loader_impl.h"

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

}  // namespace dial9::analysis
