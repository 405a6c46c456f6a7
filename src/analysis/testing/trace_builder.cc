// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/trace_builder.h"

#include "analysis/loader.h"

namespace dial9::analysis::testing {
namespace {

using format::FieldSpec;
using format::FieldType;

struct EventSchema {
  std::string_view name;
  std::vector<FieldSpec> fields;
};

EventSchema accept_queue_schema() {
  return {"TcpAcceptQueueEvent",
          {{"socket_cookie", FieldType::kVarint},
           {"socket_inode", FieldType::kVarint},
           {"ip_version", FieldType::kU8},
           {"local_addr", FieldType::kString},
           {"local_port", FieldType::kU16},
           {"pending_connections", FieldType::kU32},
           {"backlog_limit", FieldType::kU32},
           {"dropped_connections", FieldType::kVarint, true}}};
}

// By TraceBuilder::Type, from 1, up to the first of off_cpu_schemas().
const std::vector<EventSchema>& schemas() {
  constexpr FieldType kVarint = FieldType::kVarint;
  constexpr FieldType kU32 = FieldType::kU32;
  constexpr FieldType kText = FieldType::kPooledString;
  static const std::vector<EventSchema> kSchemas = {
      {},
      {"PollStartEvent",
       {{"worker_id", kVarint},
        {"local_queue", FieldType::kU8},
        {"task_id", kVarint},
        {"spawn_loc", kText}}},
      {"PollEndEvent", {{"worker_id", kVarint}}},
      {"WorkerParkEvent",
       {{"worker_id", kVarint},
        {"local_queue", FieldType::kU8},
        {"cpu_time_ns", kVarint},
        {"tid", kU32}}},
      {"WorkerUnparkEvent",
       {{"worker_id", kVarint},
        {"local_queue", FieldType::kU8},
        {"cpu_time_ns", kVarint},
        {"sched_wait_ns", kVarint, true},
        {"tid", kU32}}},
      {"TaskSpawnEvent",
       {{"task_id", kVarint}, {"spawn_loc", kText}, {"instrumented", FieldType::kBool}}},
      {"TaskTerminateEvent", {{"task_id", kVarint}}},
      {"WakeEventEvent",
       {{"waker_task_id", kVarint}, {"woken_task_id", kVarint}, {"target_worker", FieldType::kU8}}},
      {"RuntimeMetricsEvent",
       {{"runtime_name", kText}, {"global_queue_depth", kU32}, {"alive_tasks", kU32}}},
      {"WorkerSchedEvent",
       {{"worker_id", kVarint},
        {"tid", kU32},
        {"run_ns", kVarint},
        {"wait_ns", kVarint},
        {"slices", kVarint}}},
      {"BlockingCallEvent",
       {{"tid", kU32}, {"task_id", kVarint}, {"call", kText}, {"duration_ns", kVarint}}},
      {"LockWaitEvent",
       {{"tid", kU32},
        {"task_id", kVarint},
        {"lock", kVarint},
        {"owner_tid", kU32, true},
        {"duration_ns", kVarint},
        {"kind", format::FieldType::kU8}}},
      {"ProcessResourceUsageEvent",
       {{"user_cpu_ns", kVarint}, {"system_cpu_ns", kVarint}, {"rss_bytes", kVarint}}},
      {"RecorderLossEvent",
       {{"cause", kText}, {"count", kVarint}, {"first_ns", kVarint}, {"last_ns", kVarint}}},
      {"ClockSyncEvent", {{"realtime_ns", kVarint}}},
      {"SegmentMetadataEvent", {{"entries", FieldType::kStringMap}}},
      accept_queue_schema(),
      {"PlatformStallEvent",
       {{"cause", kText},
        {"scope", kText},
        {"begin_ns", kVarint},
        {"stalled_ns", kVarint},
        {"full_stalled_ns", kVarint},
        {"step_ns", FieldType::kI64}}},
      {"RecorderShedEvent",
       {{"class", kText},
        {"keep_one_in", FieldType::kF64},
        {"since_ns", kVarint},
        {"kept", kVarint},
        {"shed", kVarint}}},
  };
  return kSchemas;
}

// From TraceBuilder::kOffCpu.
const std::vector<EventSchema>& off_cpu_schemas() {
  constexpr FieldType kVarint = FieldType::kVarint;
  constexpr FieldType kU32 = FieldType::kU32;
  constexpr FieldType kText = FieldType::kPooledString;
  static const std::vector<EventSchema> kSchemas = {
      {"OffCpuEvent",
       {{"tid", kU32},
        {"duration_ns", kVarint},
        {"reason", FieldType::kU8},
        {"callchain", FieldType::kPooledStackFrames, true},
        {"share_ns", kVarint},
        {"continued", FieldType::kBool},
        {"parked", FieldType::kBool},
        {"thread_name", kText, true},
        {"task_id", kVarint, true},
        {"span_id", kVarint, true},
        {"label_name", kText, true},
        {"label_value", kText, true},
        {"call", kText, true},
        {"cause", kText, true},
        {"truncated", FieldType::kBool},
        {"exact", FieldType::kBool},
        {"runnable_ns", kVarint, true},
        {"unwound_by", kText, true},
        {"guessed", FieldType::kBool}}},
      {"ThreadTimesEvent",
       {{"tid", kU32},
        {"thread_name", kText, true},
        {"elapsed_ns", kVarint},
        {"running_ns", kVarint},
        {"runnable_ns", kVarint},
        {"blocked_ns", kVarint},
        {"seen_ns", kVarint},
        {"share_ns", kVarint},
        {"exact", FieldType::kBool}}},
      {"SocketWaitEvent",
       {{"tid", kU32},
        {"call", kText, true},
        {"fd", kVarint, true},
        {"peer", kText, true},
        {"waited_ns", kVarint},
        {"tcp_state", FieldType::kU8},
        {"rtt_ns", kVarint, true},
        {"retransmits", kU32},
        {"total_retransmits", kU32},
        {"since_received_ns", kVarint, true},
        {"unread_bytes", kVarint, true},
        {"unsent_bytes", kVarint, true},
        {"thread_name", kText, true},
        {"task_id", kVarint, true}}},
  };
  return kSchemas;
}

}  // namespace

void TraceBuilder::begin(Type type, std::uint64_t at_ns) {
  if ((registered_ & (1U << type)) == 0) {
    registered_ |= 1U << type;
    const EventSchema& schema =
        type < kOffCpu ? schemas()[type] : off_cpu_schemas()[type - kOffCpu];
    encoder_.schema(type, schema.name, true, std::span(schema.fields));
  }
  encoder_.begin(type, at_ns);
}

void TraceBuilder::poll_start(std::uint64_t at_ns, std::uint64_t worker, std::uint64_t task,
                              std::string_view place) {
  begin(kPollStart, at_ns);
  encoder_.varint(worker);
  encoder_.u8(0);
  encoder_.varint(task);
  encoder_.pooled_string(place);
}

void TraceBuilder::poll_end(std::uint64_t at_ns, std::uint64_t worker) {
  begin(kPollEnd, at_ns);
  encoder_.varint(worker);
}

void TraceBuilder::poll(std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t worker,
                        std::uint64_t task, std::string_view place) {
  poll_start(start_ns, worker, task, place);
  poll_end(end_ns, worker);
}

void TraceBuilder::park(std::uint64_t at_ns, std::uint64_t worker, std::uint32_t tid,
                        std::uint64_t cpu_ns) {
  begin(kPark, at_ns);
  encoder_.varint(worker);
  encoder_.u8(0);
  encoder_.varint(cpu_ns);
  encoder_.u32(tid);
}

void TraceBuilder::unpark(std::uint64_t at_ns, std::uint64_t worker, std::uint64_t wait_ns,
                          std::uint32_t tid, std::uint64_t cpu_ns) {
  begin(kUnpark, at_ns);
  encoder_.varint(worker);
  encoder_.u8(0);
  encoder_.varint(cpu_ns);
  if (wait_ns == kNoWait) {
    encoder_.absent();
  } else {
    encoder_.present();
    encoder_.varint(wait_ns);
  }
  encoder_.u32(tid);
}

void TraceBuilder::spawn(std::uint64_t at_ns, std::uint64_t task, std::string_view place,
                         bool is_instrumented) {
  begin(kSpawn, at_ns);
  encoder_.varint(task);
  encoder_.pooled_string(place);
  encoder_.boolean(is_instrumented);
}

void TraceBuilder::terminate(std::uint64_t at_ns, std::uint64_t task) {
  begin(kTerminate, at_ns);
  encoder_.varint(task);
}

void TraceBuilder::wake(std::uint64_t at_ns, std::uint64_t woken, std::uint64_t waker) {
  begin(kWake, at_ns);
  encoder_.varint(waker);
  encoder_.varint(woken);
  encoder_.u8(255);
}

void TraceBuilder::metrics(std::uint64_t at_ns, std::string_view runtime, std::uint32_t depth,
                           std::uint32_t alive) {
  begin(kMetrics, at_ns);
  encoder_.pooled_string(runtime);
  encoder_.u32(depth);
  encoder_.u32(alive);
}

void TraceBuilder::sched(std::uint64_t at_ns, std::uint64_t worker, std::uint64_t run_ns,
                         std::uint64_t wait_ns, std::uint32_t tid) {
  begin(kSched, at_ns);
  encoder_.varint(worker);
  encoder_.u32(tid);
  encoder_.varint(run_ns);
  encoder_.varint(wait_ns);
  encoder_.varint(1);
}

void TraceBuilder::blocking_call(std::uint64_t at_ns, std::uint64_t duration_ns, std::uint64_t task,
                                 std::string_view call, std::uint32_t tid) {
  begin(kBlockingCall, at_ns);
  encoder_.u32(tid);
  encoder_.varint(task);
  encoder_.pooled_string(call);
  encoder_.varint(duration_ns);
}

void TraceBuilder::lock_wait(std::uint64_t at_ns, std::uint64_t duration_ns, std::uint64_t task,
                             std::uint64_t lock, const LockWaitOf& of) {
  begin(kLockWait, at_ns);
  encoder_.u32(of.tid);
  encoder_.varint(task);
  encoder_.varint(lock);
  if (of.owner_tid == 0) {
    encoder_.absent();
  } else {
    encoder_.present();
    encoder_.u32(of.owner_tid);
  }
  encoder_.varint(duration_ns);
  encoder_.u8(static_cast<std::uint8_t>(of.kind));
}

void TraceBuilder::resources(std::uint64_t at_ns, std::uint64_t cpu_ns) {
  begin(kResources, at_ns);
  encoder_.varint(cpu_ns);
  encoder_.varint(0);
  encoder_.varint(64 << 20);
}

void TraceBuilder::accept_queue(std::uint64_t at_ns, std::uint64_t cookie, std::uint32_t port,
                                std::uint32_t pending, std::uint32_t backlog, std::uint64_t drops) {
  begin(kAcceptQueue, at_ns);
  encoder_.varint(cookie);
  encoder_.varint(1'000 + cookie);
  encoder_.u8(4);
  encoder_.string("127.0.0.1");
  encoder_.u16(static_cast<std::uint16_t>(port));
  encoder_.u32(pending);
  encoder_.u32(backlog);
  if (drops == kNoDrops) {
    encoder_.absent();
  } else {
    encoder_.present();
    encoder_.varint(drops);
  }
}

void TraceBuilder::platform_stall(std::uint64_t begin_ns, std::uint64_t end_ns,
                                  std::string_view cause, std::uint64_t stalled_ns,
                                  std::int64_t step_ns) {
  begin(kPlatformStall, end_ns);
  encoder_.pooled_string(cause);
  encoder_.pooled_string("machine");
  encoder_.varint(begin_ns);
  encoder_.varint(stalled_ns);
  encoder_.varint(stalled_ns);
  encoder_.i64(step_ns);
}

void TraceBuilder::optional_text(std::string_view text) {
  if (text.empty()) return encoder_.absent();
  encoder_.present();
  encoder_.pooled_string(text);
}

void TraceBuilder::optional_id(std::uint64_t id) {
  if (id == 0) return encoder_.absent();
  encoder_.present();
  encoder_.varint(id);
}

void TraceBuilder::off_cpu(const OffCpuWaitEvent& wait) {
  begin(kOffCpu, wait.at_ns);
  encoder_.u32(wait.tid);
  encoder_.varint(wait.proven_ns);
  encoder_.u8(wait.reason);
  if (wait.frames.empty()) {
    encoder_.absent();
  } else {
    encoder_.present();
    encoder_.pooled_stack(wait.frames);
  }
  encoder_.varint(wait.share_ns);
  encoder_.boolean(wait.is_continued);
  encoder_.boolean(wait.is_parked);
  optional_text(wait.thread);
  optional_id(wait.task);
  optional_id(wait.span);
  optional_text(wait.label.empty() ? "" : "tenant");
  optional_text(wait.label);
  optional_text(wait.call);
  optional_text(wait.cause);
  encoder_.boolean(wait.is_truncated);
  encoder_.boolean(wait.is_exact);
  optional_id(wait.runnable_ns);
  optional_text(wait.unwound_by);
  encoder_.boolean(wait.is_guessed);
}

void TraceBuilder::thread_times(const ThreadTimesEvent& times) {
  begin(kThreadTimes, times.at_ns);
  encoder_.u32(times.tid);
  optional_text(times.thread);
  for (const std::uint64_t ns :
       {times.running_ns + times.runnable_ns + times.blocked_ns, times.running_ns,
        times.runnable_ns, times.blocked_ns, times.seen_ns, times.share_ns}) {
    encoder_.varint(ns);
  }
  encoder_.boolean(times.is_exact);
}

void TraceBuilder::socket_wait(const SocketWaitEvent& wait) {
  begin(kSocketWait, wait.at_ns);
  encoder_.u32(wait.tid);
  optional_text(wait.call);
  optional_id(wait.fd);
  optional_text(wait.peer);
  encoder_.varint(wait.waited_ns);
  encoder_.u8(wait.tcp_state);
  optional_id(wait.rtt_ns);
  encoder_.u32(wait.retransmits);
  encoder_.u32(wait.total_retransmits);
  optional_id(wait.since_received_ns);
  optional_id(wait.unread_bytes);
  optional_id(wait.unsent_bytes);
  optional_text(wait.thread);
  optional_id(wait.task);
}

void TraceBuilder::loss(std::uint64_t at_ns, std::string_view cause, std::uint64_t count,
                        std::uint64_t first_ns, std::uint64_t last_ns) {
  begin(kLoss, at_ns);
  encoder_.pooled_string(cause);
  encoder_.varint(count);
  encoder_.varint(first_ns);
  encoder_.varint(last_ns);
}

void TraceBuilder::shed(std::uint64_t at_ns, std::string_view kind, double keep_one_in,
                        std::uint64_t since_ns, std::uint64_t kept, std::uint64_t shed) {
  begin(kShed, at_ns);
  encoder_.pooled_string(kind);
  encoder_.f64(keep_one_in);
  encoder_.varint(since_ns);
  encoder_.varint(kept);
  encoder_.varint(shed);
}

void TraceBuilder::clock_sync(std::uint64_t at_ns, std::uint64_t realtime_ns) {
  begin(kClockSync, at_ns);
  encoder_.varint(realtime_ns);
}

void TraceBuilder::metadata(std::uint64_t at_ns, std::string_view key, std::string_view value) {
  begin(kMetadata, at_ns);
  encoder_.string_map({{key, value}});
}

void TraceBuilder::new_stream() {
  encoder_.new_stream();
  registered_ = 0;
}

std::vector<std::uint8_t> TraceBuilder::take() {
  registered_ = 0;
  return encoder_.take();
}

Trace TraceBuilder::load() { return analysis::load(take()); }

}  // namespace dial9::analysis::testing
