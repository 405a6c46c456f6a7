// Writes the traces that the viewer's tests open, the same bytes each time: a large one of a busy
// service with a few faults in it, a tiny one, a truncated one, one without any runtime event, one
// with what a profiler records, one with waits, one with allocations, one of a recorder that kept a
// budget, and, in FOLDER/base, an earlier run to compare with.
//
//   web_make_traces FOLDER [EVENTS]     EVENTS of the large one, 5,000,000 if left out
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "flame_trace.h"
#include "format/encoder.h"
#include "profile_trace.h"

namespace {

using dial9::format::Encoder;
using dial9::format::FieldSpec;
using dial9::format::FieldType;

constexpr std::uint64_t kOriginNs = 8'000'000'000'000;
constexpr std::uint64_t kRealtimeNs = 1'782'136'202'000'000'000;  // 2026-06-22 13:50:02 UTC
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kWorkers = 16;
constexpr std::uint32_t kTasks = 600;

enum Type : std::uint16_t {
  kPollStart = 1,
  kPollEnd,
  kPark,
  kUnpark,
  kSpawn,
  kTerminate,
  kWake,
  kMetrics,
  kClock,
  kLoss,
  kMetadata,
  kRequest,
  kCacheMiss,
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
  out.schema(kTerminate, "TaskTerminateEvent", true, {task});
  out.schema(kWake, "WakeEventEvent", true,
             {{"waker_task_id", FieldType::kVarint},
              {"woken_task_id", FieldType::kVarint},
              {"target_worker", FieldType::kU8}});
  out.schema(kMetrics, "RuntimeMetricsEvent", true,
             {{"runtime_name", FieldType::kPooledString},
              {"global_queue_depth", FieldType::kU32},
              {"alive_tasks", FieldType::kU32}});
  out.schema(kClock, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}});
  out.schema(kLoss, "RecorderLossEvent", true,
             {{"cause", FieldType::kPooledString},
              {"count", FieldType::kVarint},
              {"first_ns", FieldType::kVarint},
              {"last_ns", FieldType::kVarint}});
  out.schema(kMetadata, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}});
  out.schema(kRequest, "checkout_request", true,
             {{"duration_ns", FieldType::kVarint}, {"items", FieldType::kVarint}});
  out.annotations(kRequest, {{0, "dial9.role", "span.duration"}, {0, "unit", "ns"}});
  out.schema(kCacheMiss, "CacheMiss", true,
             {{"key", FieldType::kString}, {"size", FieldType::kVarint}});
  out.annotations(kCacheMiss, {{1, "unit", "bytes"}});
}

const char* place_of(std::uint64_t task) {
  static const char* const kPlaces[] = {"src/session.cc:88", "src/checkout.cc:141",
                                        "src/kv_client.cc:57", "src/audit_log.cc:33"};
  return kPlaces[task % 4];
}

// A service that never rests: each worker polls one task after the other and parks now and then.
class Service {
 public:
  explicit Service(std::uint64_t events) : events_(events) {
    add_schemas(out_);
    out_.begin(kClock, kOriginNs);
    out_.varint(kRealtimeNs);
    out_.begin(kMetadata, kOriginNs);
    out_.string_map(
        {{"service", "checkout"}, {"runtime.main", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"}});
    for (std::uint32_t task = 1; task <= kTasks; ++task) spawn(task);
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker)
      next_.push({1000 + worker * 377, worker});
  }

  std::vector<std::uint8_t> write() {
    while (count_ < events_) {
      const Turn turn = next_.top();
      next_.pop();
      samples_until(turn.at_ns);
      next_.push({step(turn), turn.worker});
    }
    return out_.take();
  }

 private:
  struct Turn {
    std::uint64_t at_ns;
    std::uint32_t worker;
    bool operator<(const Turn& other) const { return at_ns > other.at_ns; }
  };

  double uniform() { return std::generate_canonical<double, 32>(random_); }
  std::uint64_t about(double median_ns, double spread) {
    // Box and Muller by hand: std's distributions differ between libraries, these bytes must not.
    const double normal =
        std::sqrt(-2 * std::log(uniform() + 1e-12)) * std::cos(6.283185307 * uniform());
    return static_cast<std::uint64_t>(median_ns * std::exp(spread * normal)) + 1;
  }

  void begin(Type type, std::uint64_t at_ns) {
    out_.begin(type, kOriginNs + at_ns);
    ++count_;
  }
  void spawn(std::uint64_t task) {
    begin(kSpawn, task);
    out_.varint(task);
    out_.pooled_string(place_of(task));
    out_.boolean(true);
  }

  // One turn of a worker; returns when it is free again. Later events of other workers may have
  // earlier times: the streams of threads interleave like that in a real segment too.
  std::uint64_t step(const Turn& turn) {
    std::uint64_t now = turn.at_ns;
    if (uniform() < 0.05) now = park(turn.worker, now);
    const std::uint64_t task = 1 + random_() % kTasks;
    begin(kWake, now > 20'000 ? now - about(6'000, 0.8) % 20'000 : now);
    out_.varint(1 + random_() % kTasks);
    out_.varint(task);
    out_.u8(static_cast<std::uint8_t>(turn.worker));
    begin(kPollStart, now);
    out_.varint(turn.worker);
    out_.u8(static_cast<std::uint8_t>(random_() % 5));
    out_.varint(task);
    out_.pooled_string(place_of(task));
    std::uint64_t length = about(24'000, 0.9);
    if (task % 4 == 1 && uniform() < 0.0004) length = about(20e6, 0.15);  // the long handler
    begin(kPollEnd, now + length);
    out_.varint(turn.worker);
    if (uniform() < 0.02) request(now + length);
    return now + length + about(2'000, 0.5);
  }

  std::uint64_t park(std::uint32_t worker, std::uint64_t now) {
    begin(kPark, now);
    out_.varint(worker);
    out_.u8(0);
    out_.varint(now / 2);
    out_.u32(4000 + worker);
    const std::uint64_t until = now + about(150'000, 1.0);
    begin(kUnpark, until);
    out_.varint(worker);
    out_.u8(0);
    out_.varint(now / 2 + 1000);
    out_.present();
    out_.varint(uniform() < 0.2 ? (until - now) / 4 : 0);
    out_.u32(4000 + worker);
    return until;
  }

  void request(std::uint64_t end_ns) {
    begin(kRequest, end_ns);
    out_.varint(std::min(about(3e6, 0.7), end_ns));
    out_.varint(1 + random_() % 9);
    if (uniform() < 0.3) {
      begin(kCacheMiss, end_ns);
      out_.string("user:" + std::to_string(random_() % 1000));
      out_.varint(random_() % 65536);
    }
  }

  void samples_until(std::uint64_t now) {
    for (; sampled_ns_ + 10 * kMs <= now; sampled_ns_ += 10 * kMs) {
      begin(kMetrics, sampled_ns_);
      out_.pooled_string("main");
      const double wave = 1 + std::sin(static_cast<double>(sampled_ns_) / 4e9);
      out_.u32(static_cast<std::uint32_t>(wave * 20 + uniform() * 6));
      out_.u32(kTasks);
      if (sampled_ns_ == 160 * kMs) {
        begin(kLoss, sampled_ns_);
        out_.pooled_string("buffer full");
        out_.varint(1234);
        out_.varint(kOriginNs + 120 * kMs);
        out_.varint(kOriginNs + 145 * kMs);
      }
    }
  }

  Encoder out_;
  std::mt19937 random_{20260622};
  std::priority_queue<Turn> next_;
  std::uint64_t events_;
  std::uint64_t count_ = 0;
  std::uint64_t sampled_ns_ = 0;
};

std::vector<std::uint8_t> ten_events() {
  Encoder out;
  add_schemas(out);
  const auto poll = [&](std::uint64_t at_ns, std::uint64_t length_ns) {
    out.begin(kPollStart, kOriginNs + at_ns);
    out.varint(0);
    out.u8(0);
    out.varint(1);
    out.pooled_string("tiny.cc:1");
    out.begin(kPollEnd, kOriginNs + at_ns + length_ns);
    out.varint(0);
  };
  for (std::uint64_t i = 0; i < 5; ++i) poll(i * kMs, 100'000 * (i + 1));
  return out.take();
}

std::vector<std::uint8_t> custom_only() {
  Encoder out;
  out.schema(1, "SensorReading", true, {{"celsius", FieldType::kF64}});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    out.begin(1, kOriginNs + i * kMs);
    out.f64(20 + std::sin(static_cast<double>(i) / 100));
  }
  return out.take();
}

// What a recorder with a budget leaves: polls, its rates and a bill a second.
std::vector<std::uint8_t> governed() {
  Encoder out;
  add_schemas(out);
  out.schema(100, "RecorderShedEvent", true,
             {{"class", FieldType::kPooledString},
              {"keep_one_in", FieldType::kF64},
              {"since_ns", FieldType::kVarint},
              {"kept", FieldType::kVarint},
              {"shed", FieldType::kVarint}});
  out.schema(101, "RecorderBillEvent", true,
             {{"elapsed_ns", FieldType::kVarint},
              {"collector_cpu_ns", FieldType::kVarint},
              {"host_cpu_ns", FieldType::kVarint},
              {"bytes", FieldType::kVarint},
              {"events", FieldType::kVarint},
              {"shed", FieldType::kVarint}});
  out.begin(kClock, kOriginNs);
  out.varint(kRealtimeNs);
  out.begin(kMetadata, kOriginNs);
  out.string_map({{"service", "checkout"}, {"host", "shop-3"}, {"dial9.governed", "true"}});
  constexpr std::uint64_t kSecond = 1'000 * kMs;
  for (std::uint64_t i = 0; i < 4; ++i) {
    out.begin(kPollStart, kOriginNs + i * kSecond);
    out.varint(0);
    out.u8(0);
    out.varint(1 + i);
    out.pooled_string("app.cc:1");
    out.begin(kPollEnd, kOriginNs + i * kSecond + 20 * kMs);
    out.varint(0);
    out.begin(100, kOriginNs + (i + 1) * kSecond);
    out.pooled_string("polls");
    out.f64(i == 3 ? 1 : 12.5);
    out.varint(kOriginNs + i * kSecond);
    out.varint(80);
    out.varint(i == 0 ? 0 : 920);
    out.begin(101, kOriginNs + (i + 1) * kSecond);
    for (const std::uint64_t value : {kSecond, 4 * kMs, 9 * kMs, 1'250'000UL, 40'000UL, 920UL}) {
      out.varint(value);
    }
  }
  return out.take();
}

bool write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t events = 5'000'000;
  if (argc == 3) std::from_chars(argv[2], argv[2] + std::string_view(argv[2]).size(), events);
  if (argc < 2 || argc > 3 || events == 0) {
    std::fputs("usage: web_make_traces FOLDER [EVENTS]\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder / "base");
  const auto small = Service(200'000).write();
  const std::span<const std::uint8_t> cut(small.data(), small.size() - 5);
  const bool is_written =
      write(folder / "large.bin", Service(events).write()) &&
      write(folder / "service.bin", small) && write(folder / "truncated.bin", cut) &&
      write(folder / "tiny.bin", ten_events()) && write(folder / "custom.bin", custom_only()) &&
      write(folder / "governed.bin", governed()) &&
      write(folder / "profile.bin", web_test::profile_trace()) &&
      write(folder / "flame.bin", web_test::flame_trace()) &&
      write(folder / "heap.bin", web_test::heap_trace()) &&
      write(folder / "base" / "before.bin", web_test::flame_before_trace());
  if (!is_written) std::fputs("web_make_traces: cannot write there\n", stderr);
  return is_written ? 0 : 1;
}
