// See sample_runs.h.
// Strongest property: written with the format's own encoder, field by field from
// docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/testing/sample_runs.h"

#include <algorithm>

#include "analysis/loader.h"
#include "format/encoder.h"

namespace dial9::server::testing {
namespace {

using format::Encoder;
using format::FieldSpec;
using format::FieldType;

constexpr std::uint64_t kMs = 1'000'000;
enum Type : std::uint16_t {
  kPollStart = 1,
  kPollEnd,
  kPark,
  kUnpark,
  kSpawn,
  kEnd,
  kWake,
  kQueue,
  kClock,
  kLoss,
  kOrder,
  kSpan,
};

void add_schemas(Encoder& out) {
  const FieldSpec worker{"worker_id", FieldType::kVarint};
  const FieldSpec local{"local_queue", FieldType::kU8};
  const FieldSpec task{"task_id", FieldType::kVarint};
  const FieldSpec loc{"spawn_loc", FieldType::kPooledString};
  const FieldSpec cpu{"cpu_time_ns", FieldType::kVarint};
  const FieldSpec tid{"tid", FieldType::kU32};
  out.schema(kPollStart, "PollStartEvent", true, {worker, local, task, loc});
  out.schema(kPollEnd, "PollEndEvent", true, {worker});
  out.schema(kPark, "WorkerParkEvent", true, {worker, local, cpu, tid});
  out.schema(kUnpark, "WorkerUnparkEvent", true,
             {worker, local, cpu, {"sched_wait_ns", FieldType::kVarint, true}, tid});
  out.schema(kSpawn, "TaskSpawnEvent", true, {task, loc, {"instrumented", FieldType::kBool}});
  out.schema(kEnd, "TaskTerminateEvent", true, {task});
  out.schema(kWake, "WakeEventEvent", true,
             {{"waker_task_id", FieldType::kVarint},
              {"woken_task_id", FieldType::kVarint},
              {"target_worker", FieldType::kU8}});
  out.schema(kQueue, "RuntimeMetricsEvent", true,
             {{"runtime_name", FieldType::kPooledString},
              {"global_queue_depth", FieldType::kU32},
              {"alive_tasks", FieldType::kU32}});
  out.schema(kClock, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}});
  out.schema(kLoss, "RecorderLossEvent", true,
             {{"cause", FieldType::kPooledString},
              {"count", FieldType::kVarint},
              {"first_ns", FieldType::kVarint},
              {"last_ns", FieldType::kVarint}});
  out.schema(kOrder, "OrderPlaced", true,
             {{"amount", FieldType::kF64, true}, {"note", FieldType::kString}});
  out.schema(kSpan, "checkout", true, {{"started_ns", FieldType::kVarint}});
  out.annotations(kSpan, {{0, "dial9.role", "span.duration"}, {0, "unit", "ns"}});
}

void poll(Encoder& out, std::uint64_t worker, std::uint64_t task, std::uint64_t start_ns,
          std::uint64_t duration_ns, std::string_view loc) {
  out.begin(kPollStart, kOriginNs + start_ns);
  out.varint(worker);
  out.u8(0);
  out.varint(task);
  out.pooled_string(loc);
  out.begin(kPollEnd, kOriginNs + start_ns + duration_ns);
  out.varint(worker);
}

void wake(Encoder& out, std::uint64_t waker, std::uint64_t woken, std::uint64_t at_ns) {
  out.begin(kWake, kOriginNs + at_ns);
  out.varint(waker);
  out.varint(woken);
  out.u8(0);
}

void park(Encoder& out, std::uint64_t from_ns, std::uint64_t to_ns, std::uint64_t wait_ns) {
  out.begin(kPark, kOriginNs + from_ns);
  out.varint(1);
  out.u8(0);
  out.varint(1000);
  out.u32(4242);
  out.begin(kUnpark, kOriginNs + to_ns);
  out.varint(1);
  out.u8(0);
  out.varint(1500);
  out.present();
  out.varint(wait_ns);
  out.u32(4242);
}

void queue(Encoder& out, std::uint64_t at_ns, std::uint32_t depth) {
  out.begin(kQueue, kOriginNs + at_ns);
  out.pooled_string("main");
  out.u32(depth);
  out.u32(2);
}

void order(Encoder& out, std::uint64_t at_ns, double amount, bool has_amount,
           std::string_view note) {
  out.begin(kOrder, kOriginNs + at_ns);
  if (has_amount) {
    out.present();
    out.f64(amount);
  } else {
    out.absent();
  }
  out.string(note);
}

}  // namespace

Bytes sample_trace() {
  Encoder out;
  add_schemas(out);
  out.begin(kClock, kOriginNs);
  out.varint(kOriginRealtimeNs);
  out.begin(kSpawn, kOriginNs);
  out.varint(7);
  out.pooled_string("main.cc:7");
  out.boolean(true);
  queue(out, 0, 0);
  order(out, 5 * kMs, 1, true, "a");
  order(out, 6 * kMs, 2.5, true, "b");
  for (std::uint64_t i = 1; i <= 9; ++i) {
    wake(out, 8, 7, i * 10 * kMs - kMs / 2);
    poll(out, 0, 7, i * 10 * kMs, kMs, "main.cc:7");
    if (i == 3) queue(out, 30 * kMs, 5);
  }
  poll(out, 1, 8, 20 * kMs, 50 * kMs, "other.cc:8");
  park(out, 75 * kMs, 95 * kMs, 4 * kMs);
  out.begin(kSpan, kOriginNs + 60 * kMs);
  out.varint(50 * kMs);
  out.begin(kLoss, kOriginNs + 50 * kMs);
  out.pooled_string("ring full");
  out.varint(12);
  out.varint(kOriginNs + 40 * kMs);
  out.varint(kOriginNs + 45 * kMs);
  order(out, 90 * kMs, 0, false, "c");
  out.begin(kEnd, kOriginNs + 99 * kMs);
  out.varint(7);
  return out.take();
}

Bytes dense_trace(std::uint32_t polls) {
  Encoder out;
  add_schemas(out);
  for (std::uint32_t i = 0; i < polls; ++i) poll(out, 0, i + 1, i * 2000ull, 1000, "dense.cc:1");
  return out.take();
}

Bytes overlapping_trace() {
  Encoder out;
  add_schemas(out);
  poll(out, 1, 3, 0, kMs, "twice.cc:1");
  poll(out, 0, 3, 10 * kMs, 80 * kMs, "twice.cc:1");
  poll(out, 1, 3, 20 * kMs, kMs, "twice.cc:1");
  poll(out, 1, 3, 55 * kMs, kMs, "twice.cc:1");
  return out.take();
}

Bytes custom_only_trace(std::uint32_t count) {
  Encoder out;
  out.schema(1, "Tick", true, {{"n", FieldType::kVarint}});
  for (std::uint32_t i = 0; i < count; ++i) {
    out.begin(1, kOriginNs + i * kMs);
    out.varint(i);
  }
  return out.take();
}

std::unique_ptr<Run> load_run(const Bytes& bytes, std::uint64_t generation) {
  return std::make_unique<Run>("sample", generation, analysis::load(bytes));
}

void MemoryRuns::add(const std::string& id, Bytes bytes) { runs_[id] = std::move(bytes); }

Result<std::vector<RunInfo>> MemoryRuns::list() {
  std::vector<RunInfo> out;
  for (const auto& [id, bytes] : runs_) {
    RunInfo info;
    info.id = id;
    info.name = id;
    info.bytes = bytes.size();
    info.files = {{id + ".bin", "", bytes.size()}};
    out.push_back(info);
  }
  return out;
}

Result<void> MemoryRuns::read(const RunInfo& run, std::size_t,
                              const std::function<bool(std::span<const std::uint8_t>)>& take) {
  if (broken_.contains(run.id)) return make_error(ErrorCode::kIo, broken_[run.id]);
  const std::span<const std::uint8_t> all(runs_.at(run.id));
  for (std::size_t at = 0; at < all.size(); at += 1000) {
    if (before_chunk) before_chunk();
    if (!take(all.subspan(at, std::min<std::size_t>(1000, all.size() - at)))) return {};
  }
  return {};
}

}  // namespace dial9::server::testing
