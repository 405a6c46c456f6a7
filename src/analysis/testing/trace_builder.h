// Writes traces of runtime events for tests and tools, one call an event, in any order: the schemas
// of docs/spec/events.md are registered as they are needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/trace.h"
#include "format/encoder.h"

namespace dial9::analysis::testing {

// Empty and 0: absent, as our recorder writes what it doesn't know.
struct OffCpuWaitEvent {
  std::uint64_t at_ns = 0;
  std::uint64_t proven_ns = 0;
  std::uint64_t share_ns = 0;
  std::string_view cause = {};
  std::string_view call = {};
  std::vector<std::uint64_t> frames = {};  // leaf first
  std::uint32_t tid = 7;
  std::string_view thread = "io";
  std::uint64_t task = 0;
  std::uint64_t span = 0;
  std::string_view label = {};  // the value of the label "tenant"
  std::uint8_t reason = 0;
  bool is_continued = false;
  bool is_parked = false;
  bool is_truncated = false;
  bool is_exact = false;
  std::uint64_t runnable_ns = 0;  // of proven_ns
  std::string_view unwound_by = {};
  bool is_guessed = false;
};

struct LockWaitOf {
  LockKind kind = LockKind::kMutex;
  std::uint32_t owner_tid = 0;
  std::uint32_t tid = 0;
};

struct ThreadTimesEvent {
  std::uint64_t at_ns = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t runnable_ns = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t seen_ns = 0;
  std::uint64_t share_ns = 0;
  std::uint32_t tid = 7;
  std::string_view thread = "io";
  bool is_exact = false;
};

struct SocketWaitEvent {
  std::uint64_t at_ns = 0;
  std::uint64_t waited_ns = 0;
  std::string_view call = "recv";
  std::uint64_t fd = 12;
  std::string_view peer = "10.0.0.7:6379";
  std::uint32_t tid = 7;
  std::uint8_t tcp_state = 1;
  std::uint64_t rtt_ns = 0;
  std::uint32_t retransmits = 0;
  std::uint32_t total_retransmits = 0;
  std::uint64_t since_received_ns = 0;
  std::uint64_t unread_bytes = 0;
  std::uint64_t unsent_bytes = 0;
  std::string_view thread = {};
  std::uint64_t task = 0;
};

class TraceBuilder {
 public:
  static constexpr std::uint64_t kNoWait = ~std::uint64_t{0};  // no sched_wait was sampled

  void poll_start(std::uint64_t at_ns, std::uint64_t worker, std::uint64_t task,
                  std::string_view place = "app.cc:1");
  void poll_end(std::uint64_t at_ns, std::uint64_t worker);
  // Both of them.
  void poll(std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t worker, std::uint64_t task,
            std::string_view place = "app.cc:1");
  void park(std::uint64_t at_ns, std::uint64_t worker, std::uint32_t tid = 0,
            std::uint64_t cpu_ns = 0);
  void unpark(std::uint64_t at_ns, std::uint64_t worker, std::uint64_t wait_ns = kNoWait,
              std::uint32_t tid = 0, std::uint64_t cpu_ns = 0);
  void spawn(std::uint64_t at_ns, std::uint64_t task, std::string_view place = "app.cc:1",
             bool is_instrumented = true);
  void terminate(std::uint64_t at_ns, std::uint64_t task);
  void wake(std::uint64_t at_ns, std::uint64_t woken, std::uint64_t waker = 0);
  void metrics(std::uint64_t at_ns, std::string_view runtime, std::uint32_t depth,
               std::uint32_t alive);
  void sched(std::uint64_t at_ns, std::uint64_t worker, std::uint64_t run_ns, std::uint64_t wait_ns,
             std::uint32_t tid = 0);
  void blocking_call(std::uint64_t at_ns, std::uint64_t duration_ns, std::uint64_t task,
                     std::string_view call, std::uint32_t tid = 0);
  void lock_wait(std::uint64_t at_ns, std::uint64_t duration_ns, std::uint64_t task,
                 std::uint64_t lock, const LockWaitOf& of = {});
  void resources(std::uint64_t at_ns, std::uint64_t cpu_ns);
  static constexpr std::uint64_t kNoDrops = ~std::uint64_t{0};  // the writer doesn't tell
  void accept_queue(std::uint64_t at_ns, std::uint64_t cookie, std::uint32_t port,
                    std::uint32_t pending, std::uint32_t backlog, std::uint64_t drops = kNoDrops);
  void platform_stall(std::uint64_t begin_ns, std::uint64_t end_ns, std::string_view cause,
                      std::uint64_t stalled_ns, std::int64_t step_ns = 0);
  void off_cpu(const OffCpuWaitEvent& wait);
  void socket_wait(const SocketWaitEvent& wait);
  void thread_times(const ThreadTimesEvent& times);  // elapsed is the sum of the three
  void loss(std::uint64_t at_ns, std::string_view cause, std::uint64_t count,
            std::uint64_t first_ns, std::uint64_t last_ns);
  // Unweighted where `keep_one_in` is 1: from then on all are kept.
  void shed(std::uint64_t at_ns, std::string_view kind, double keep_one_in, std::uint64_t since_ns,
            std::uint64_t kept, std::uint64_t shed);
  void clock_sync(std::uint64_t at_ns, std::uint64_t realtime_ns);
  void metadata(std::uint64_t at_ns, std::string_view key, std::string_view value);

  // Another stream, as a thread's flush begins one.
  void new_stream();
  // For what has no call above. Type ids from 100 on are free; schemas are gone after new_stream().
  format::Encoder& encoder() { return encoder_; }

  // The bytes so far; the builder starts anew.
  std::vector<std::uint8_t> take();
  Trace load();

 private:
  enum Type : std::uint16_t {
    kPollStart = 1,
    kPollEnd,
    kPark,
    kUnpark,
    kSpawn,
    kTerminate,
    kWake,
    kMetrics,
    kSched,
    kBlockingCall,
    kLockWait,
    kResources,
    kLoss,
    kClockSync,
    kMetadata,
    kAcceptQueue,
    kPlatformStall,
    kShed,
    kOffCpu,
    kThreadTimes,
    kSocketWait,
  };
  void optional_text(std::string_view text);
  void optional_id(std::uint64_t id);
  void begin(Type type, std::uint64_t at_ns);

  format::Encoder encoder_;
  std::uint32_t registered_ = 0;  // bits by Type
};

}  // namespace dial9::analysis::testing
