// What threads did while they weren't on a CPU, as a stream: OffCpuEvents (a thread seen blocked,
// with its call and stack), SocketWaitEvents (the connection that one waits for), ThreadTimesEvents
// (how a thread's time splits, exactly), and an OffCpuProfileEvent that says what the sampler did
// and couldn't do. Strongest property: stacks, names and addresses are written once a stream.
// Spec: docs/spec/off_cpu_samples.md, "Events".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "recorder/labels.h"
#include "recorder/sample_streams.h"

namespace dial9::internal {

struct OffCpuRecord {
  std::uint64_t at_ns = 0;     // seen blocked since
  std::uint64_t seen_ns = 0;   // proven: it didn't run for so long from `at_ns` on
  std::uint64_t share_ns = 0;  // of the blocked time just before and after, its estimated part
  std::uint32_t tid = 0;
  bool is_continued = false;  // the same wait as in the thread's OffCpuEvent before
  bool is_parked = false;
  bool is_truncated = false;
  bool has_guessed_fp = false;
  bool is_preempted = false;                 // runnable, not blocked
  bool is_exact = false;                     // from switch to switch
  std::optional<std::uint64_t> runnable_ns;  // of `seen_ns`, at its end: waiting for a CPU
  std::uint64_t task = 0;                    // 0: none
  std::uint64_t span = 0;                    // 0: none
  LabelText label{};
  std::string_view thread_name;           // empty: not known
  std::string_view call;                  // empty: not known, or none
  std::string_view cause;                 // empty: not known
  std::string_view address;               // of a socket's other end; empty: not known
  std::optional<std::uint64_t> fd;        // that the call waits for
  std::optional<std::uint64_t> object;    // the futex word's address
  std::string_view unwound_by;            // empty: no stack
  std::span<const std::uint64_t> frames;  // leaf first; empty: not known
};

// A connection while a thread waits for it.
struct SocketWaitRecord {
  std::uint64_t at_ns = 0;      // of the reading
  std::uint64_t waited_ns = 0;  // until then, at least
  std::uint64_t cookie = 0;     // the kernel's name of the socket
  std::uint64_t rtt_ns = 0;     // 0: none measured
  std::uint64_t rtt_var_ns = 0;
  std::uint32_t retransmits = 0;
  std::uint32_t total_retransmits = 0;
  std::uint32_t unacked_segments = 0;
  std::uint32_t lost_segments = 0;
  std::uint8_t tcp_state = 0;
  std::optional<std::uint64_t> since_received_ns;
  std::optional<std::uint64_t> since_sent_ns;
  std::optional<std::uint64_t> unread_bytes;
  std::optional<std::uint64_t> unsent_bytes;
};

struct ThreadTimesRecord {
  std::uint64_t at_ns = 0;  // its end
  std::uint32_t tid = 0;
  std::string_view thread_name;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t runnable_ns = 0;
  std::uint64_t blocked_ns = 0;  // the three sum to elapsed
  std::uint64_t seen_ns = 0;     // of blocked: proven, with its call, by OffCpuEvents
  std::uint64_t share_ns = 0;    // of blocked: given to those by estimate
  bool is_exact = false;         // by its switches, none of which was lost
};

struct OffCpuProfileRecord {
  std::uint64_t at_ns = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint32_t threads = 0;            // followed at its end
  std::uint32_t threads_unsampled = 0;  // beyond the bound
  std::uint64_t looks = 0;              // at threads
  std::uint64_t stacks = 0;             // taken and verified
  std::uint64_t moved = 0;              // not taken: the thread ran meanwhile
  std::uint64_t unreadable = 0;         // not taken: its call or its stack can't be read
  std::uint64_t lost = 0;               // stacks taken for which there was no memory
  std::uint64_t round_ns = 0;           // what one look at every thread took last
  std::uint32_t switch_threads = 0;     // whose switches are followed, at its end
  std::uint64_t switches_lost = 0;
  std::uint64_t sockets_unread = 0;      // slow waits whose connection was left unread
  std::uint64_t unlisted = 0;            // stretches off a CPU that have no event of their own
  std::uint64_t switch_stacks = 0;       // taken at switches off a CPU
  std::uint64_t switch_stacks_lost = 0;  // such switches without one, of threads that have an event
};

// Gathers records into streams of at most about 64 KiB. Allocates.
class OffCpuEncoder {
 public:
  OffCpuEncoder();

  void add(const OffCpuRecord& wait);
  // `wait`: whose it is, and whom it waits for.
  void add(const SocketWaitRecord& socket, const OffCpuRecord& wait);
  void add(const ThreadTimesRecord& times);
  void add(const OffCpuProfileRecord& profile);
  std::vector<SourceStream> take();

 private:
  SampleStreams streams_;
};

}  // namespace dial9::internal
