// SPDX-License-Identifier: Apache-2.0
#include "profile_trace.h"

#include "format/encoder.h"

namespace web_test {
namespace {

using dial9::format::Encoder;
using dial9::format::FieldType;

constexpr std::uint64_t kOriginNs = 3'000'000'000'000;
constexpr std::uint64_t kRealtimeNs = 1'782'136'202'000'000'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kTask = 7;
constexpr std::uint32_t kThread = 41;
constexpr std::uint64_t kCpuNs = 500 * kMs;  // the thread's CPU clock at the start

enum Type : std::uint16_t {
  kPollStart = 1,
  kPollEnd,
  kPark,
  kUnpark,
  kWake,
  kClock,
  kCall,
  kSample,
  kSymbol,
  kDump,
  kSpan,
  kOrder,
};

void add_schemas(Encoder& out) {
  const FieldType number = FieldType::kVarint;
  const FieldType text = FieldType::kPooledString;
  const FieldType stack = FieldType::kPooledStackFrames;
  out.schema(kPollStart, "PollStartEvent", true,
             {{"worker_id", number}, {"task_id", number}, {"spawn_loc", text}});
  out.schema(kPollEnd, "PollEndEvent", true, {{"worker_id", number}});
  out.schema(kPark, "WorkerParkEvent", true,
             {{"worker_id", number}, {"cpu_time_ns", number}, {"tid", FieldType::kU32}});
  out.schema(kUnpark, "WorkerUnparkEvent", true,
             {{"worker_id", number}, {"cpu_time_ns", number}, {"tid", FieldType::kU32}});
  out.schema(kWake, "WakeEventEvent", true, {{"waker_task_id", number}, {"woken_task_id", number}});
  out.schema(kClock, "ClockSyncEvent", true, {{"realtime_ns", number}});
  out.schema(
      kCall, "BlockingCallEvent", true,
      {{"tid", FieldType::kU32}, {"task_id", number}, {"call", text}, {"duration_ns", number}});
  out.schema(kSample, "CpuSampleEvent", true,
             {{"tid", FieldType::kU32},
              {"source", FieldType::kU8},
              {"thread_name", text},
              {"callchain", stack}});
  out.schema(kSymbol, "SymbolTableEntry", false,
             {{"addr", number},
              {"size", number},
              {"symbol_name", text},
              {"inline_depth", number},
              {"source_file", text},
              {"source_line", number}});
  out.schema(kDump, "TaskDumpEvent", true, {{"task_id", number}, {"callchain", stack}});
  out.schema(kSpan, "request", true,
             {{"took", number}, {"name", text}, {"dial9.tokio.task_id", number}});
  out.annotations(kSpan, {{0, "dial9.role", "span.duration"}, {1, "dial9.role", "span.name"}});
  out.schema(kOrder, "Order", true, {{"amount", number}, {"total", FieldType::kF64}});
}

class Writer {
 public:
  std::vector<std::uint8_t> write() {
    add_schemas(out_);
    begin(kClock, 0);
    out_.varint(kRealtimeNs);
    park(1, 5, 0);
    poll(10, 20);
    begin(kCall, 12);
    out_.u32(kThread);
    out_.varint(kTask);
    out_.pooled_string("fsync");
    out_.varint(3 * kMs);
    park(21, 44, 8);  // 16 ms since the unpark: 8 on a CPU, 3 in the call, 5 nobody explains
    wake(40);
    poll(45, 50);
    poll(80, 90);
    park(95, 100, 59);
    symbols();
    for (std::uint64_t ms = 10; ms < 20; ++ms) sample(ms, kThread, "worker-0", {0x1010, 0x2010});
    sample(30, 99, "logger", {0x3010});
    begin(kDump, 20);
    out_.varint(kTask);
    out_.pooled_stack(std::vector<std::uint64_t>{0x4010, 0x2010});
    span(10, 90, "checkout", kTask);
    for (int i = 0; i < 1'500; ++i) span(60, 70, "upload", 0);
    for (std::uint64_t i = 0; i < 10; ++i) {
      begin(kOrder, 10 * i);
      out_.varint(i);
      out_.f64(1000.0 - static_cast<double>(i * i));
    }
    return out_.take();
  }

 private:
  void begin(Type type, std::uint64_t ms) { out_.begin(type, kOriginNs + ms * kMs); }
  void poll(std::uint64_t from_ms, std::uint64_t to_ms) {
    begin(kPollStart, from_ms);
    out_.varint(0);
    out_.varint(kTask);
    out_.pooled_string("src/checkout.cc:141");
    begin(kPollEnd, to_ms);
    out_.varint(0);
  }
  // `cpu_ms`: of the thread since the start, at both ends.
  void park(std::uint64_t from_ms, std::uint64_t to_ms, std::uint64_t cpu_ms) {
    begin(kPark, from_ms);
    out_.varint(0);
    out_.varint(kCpuNs + cpu_ms * kMs);
    out_.u32(kThread);
    begin(kUnpark, to_ms);
    out_.varint(0);
    out_.varint(kCpuNs + cpu_ms * kMs);
    out_.u32(kThread);
  }
  void wake(std::uint64_t ms) {
    begin(kWake, ms);
    out_.varint(0);
    out_.varint(kTask);
  }
  void sample(std::uint64_t ms, std::uint32_t tid, const char* thread,
              const std::vector<std::uint64_t>& frames) {
    begin(kSample, ms);
    out_.u32(tid);
    out_.u8(0);
    out_.pooled_string(thread);
    out_.pooled_stack(frames);
  }
  void span(std::uint64_t from_ms, std::uint64_t to_ms, const char* name, std::uint64_t task) {
    begin(kSpan, to_ms);
    out_.varint((to_ms - from_ms) * kMs);
    out_.pooled_string(name);
    out_.varint(task);
  }
  void symbols() {
    std::uint64_t address = 0x1000;
    for (const char* name : {"price_cart", "serve_request", "write_log", "kv_get"}) {
      out_.begin_untimed(kSymbol);
      out_.varint(address);
      out_.varint(0x100);
      out_.pooled_string(name);
      out_.varint(0);
      out_.pooled_string("/src/checkout/main.cc");
      out_.varint(address >> 8);
      address += 0x1000;
    }
  }

  Encoder out_;
};

}  // namespace

std::vector<std::uint8_t> profile_trace() { return Writer().write(); }

}  // namespace web_test
