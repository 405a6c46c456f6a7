// See socket_waits.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/socket_waits.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/counts.h"
#include "analysis/human.h"

namespace dial9::analysis {
namespace {

constexpr std::uint32_t kEstablished = 1;

// As Linux numbers them.
constexpr std::array<std::string_view, 13> kStates = {
    "",       "established", "SYN sent", "SYN received", "FIN wait 1", "FIN wait 2",  "time wait",
    "closed", "close wait",  "last ACK", "listening",    "closing",    "SYN received"};

void append(std::string& text, const std::string& part) {
  text += text.empty() ? part : "; " + part;
}

std::string outgoing_text(const SocketWait& wait) {
  std::string text;
  if (wait.unsent_bytes != kUnknownNs && wait.unsent_bytes != 0) {
    append(text, human_bytes(wait.unsent_bytes) + " written that the peer hasn't acknowledged");
  }
  if (wait.unacked_segments != 0) {
    append(text, counted(wait.unacked_segments, "segment") + " unacknowledged");
  }
  if (wait.lost_segments != 0) {
    append(text, counted(wait.lost_segments, "segment") + " taken for lost");
  }
  return text;
}

std::string retransmit_text(const SocketWait& wait) {
  if (wait.retransmits != 0) {
    return counted(wait.retransmits, "retransmission time-out") + " in a row";
  }
  return wait.total_retransmits == 0
             ? "no retransmits"
             : counted(wait.total_retransmits, "retransmit") + " in the connection's life";
}

}  // namespace

std::string socket_text(const SocketWait& wait) {
  std::string text;
  if (wait.tcp_state != kEstablished && wait.tcp_state < kStates.size() && wait.tcp_state != 0) {
    append(text, "the connection is in state " + std::string(kStates[wait.tcp_state]));
  }
  append(text, wait.since_received_ns == kUnknownNs
                   ? "the peer had never sent anything"
                   : "the peer had sent nothing for " + human_duration(wait.since_received_ns));
  if (wait.unread_bytes != kUnknownNs && wait.unread_bytes != 0) {
    append(text, human_bytes(wait.unread_bytes) + " had come that nobody read");
  }
  if (const std::string outgoing = outgoing_text(wait); !outgoing.empty()) {
    append(text, outgoing);
  }
  if (wait.rtt_ns != kUnknownNs) {
    append(text, "rtt " + human_duration(wait.rtt_ns));
  }
  append(text, retransmit_text(wait));
  return text;
}

const SocketWait* socket_wait_in(const Trace& trace, std::uint32_t tid, std::uint64_t from_ns,
                                 std::uint64_t to_ns) {
  const auto& waits = trace.socket_waits;
  std::size_t low = 0;
  std::size_t high = waits.size();
  while (low < high) {  // the first after the wait
    const std::size_t middle = low + (high - low) / 2;
    if (waits[middle].at_ns <= to_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low != 0 && waits[low - 1].at_ns >= from_ns; --low) {
    if (waits[low - 1].tid == tid) {
      return &waits[low - 1];
    }
  }
  return nullptr;
}

SampleContext context_of(const SocketWait& wait) {
  SampleContext context;
  context.at_ns = wait.at_ns;
  context.task_id = wait.task_id;
  context.span_id = wait.span_id;
  context.tid = wait.tid;
  context.lane = wait.lane;
  context.thread_name = wait.thread_name;
  context.is_label_known = false;  // no reading tells one
  return context;
}

}  // namespace dial9::analysis
