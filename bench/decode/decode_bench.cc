// Decoding in events and bytes a second, beside memcpy of the same bytes in the same run. The trace
// is what a busy service records: one 64 KiB stream after another, each with its schemas and pools,
// of polls, wakes, parks, spans and samples.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "format/decoder.h"
#include "format/encoder.h"
#include "format/gunzip.h"

namespace dial9 {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kEvents = 1'000'000;
constexpr std::size_t kStreamBytes = 64 * 1024;

enum TypeId : std::uint16_t { kPollStart = 1, kPollEnd, kWake, kUnpark, kSample, kSpan };

void put_schemas(format::Encoder& out) {
  using format::FieldType;
  out.schema(kPollStart, "PollStartEvent", true,
             {{"worker_id", FieldType::kVarint},
              {"local_queue", FieldType::kU8},
              {"task_id", FieldType::kVarint},
              {"spawn_loc", FieldType::kPooledString}});
  out.schema(kPollEnd, "PollEndEvent", true, {{"worker_id", FieldType::kVarint}});
  out.schema(kWake, "WakeEventEvent", true,
             {{"waker_task_id", FieldType::kVarint},
              {"woken_task_id", FieldType::kVarint},
              {"target_worker", FieldType::kU8}});
  out.schema(kUnpark, "WorkerUnparkEvent", true,
             {{"worker_id", FieldType::kVarint},
              {"local_queue", FieldType::kU8},
              {"cpu_time_ns", FieldType::kVarint},
              {"sched_wait_ns", FieldType::kVarint, true},
              {"tid", FieldType::kU32}});
  out.schema(kSample, "CpuSampleEvent", true,
             {{"worker_id", FieldType::kVarint},
              {"tid", FieldType::kU32},
              {"source", FieldType::kU8},
              {"thread_name", FieldType::kPooledString, true},
              {"callchain", FieldType::kPooledStackFrames}});
  out.schema(kSpan, "SpanEnter:checkout.cc:10:1", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"parent_span_id", FieldType::kVarint, true},
              {"span_name", FieldType::kPooledString},
              {"path", FieldType::kString}});
}

// One poll with what surrounds it; `n` counts polls, `dice` varies them.
void put_poll(format::Encoder& out, std::uint64_t n, std::uint64_t dice, std::uint64_t& now_ns) {
  const std::uint64_t task = 1000 + dice % 5000;
  out.begin(kPollStart, now_ns += 300 + dice % 4000);
  out.varint(n % 8);
  out.u8(static_cast<std::uint8_t>(dice % 16));
  out.varint(task);
  out.pooled_string(dice % 3 == 0 ? "checkout.cc:120" : "session.cc:44");
  out.begin(kWake, now_ns += 200);
  out.varint(task);
  out.varint(1000 + dice / 7 % 5000);
  out.u8(255);
  out.begin(kPollEnd, now_ns += 1500 + dice % 9000);
  out.varint(n % 8);
  if (n % 10 == 0) {
    out.begin(kUnpark, now_ns += 50'000);
    out.varint(n % 8);
    out.u8(0);
    out.varint(now_ns / 3);
    n % 100 == 0 ? (out.present(), out.varint(dice % 100'000)) : out.absent();
    out.u32(4242);
  }
  if (n % 20 == 0) {
    const std::uint64_t stack[] = {0x401000 + dice % 64, 0x402000, 0x403000, 0x404000, 0x405000};
    out.begin(kSample, now_ns += 10);
    out.varint(255);
    out.u32(4242);
    out.u8(0);
    out.absent();
    out.pooled_stack(stack);
  }
  if (n % 5 == 0) {
    out.begin(kSpan, now_ns += 10);
    out.varint(n % 8);
    out.varint((std::uint64_t{1} << 63) | n);
    out.absent();
    out.pooled_string("request");
    out.string("/cart/checkout");
  }
}

const Bytes& sample_trace() {
  static const Bytes trace = [] {
    format::Encoder out;
    std::minstd_rand random(42);
    Bytes all;
    std::uint64_t now_ns = 1'000'000'000;
    put_schemas(out);
    for (std::uint64_t n = 0; n < kEvents * 10 / 34; ++n) {  // 3.35 events a poll
      put_poll(out, n, random(), now_ns);
      if (out.data().size() >= kStreamBytes) {
        const Bytes stream = out.take();
        all.insert(all.end(), stream.begin(), stream.end());
        put_schemas(out);
      }
    }
    const Bytes rest = out.take();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }();
  return trace;
}

const Bytes& sample_gzip() {
  static const Bytes packed = [] {
    const Bytes& plain = sample_trace();
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    Bytes out(deflateBound(&stream, static_cast<uLong>(plain.size())) + 32);
    stream.next_in = const_cast<Bytef*>(plain.data());
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }();
  return packed;
}

// Reads every event's first value and its time, so that nothing is decoded for nobody.
struct Reader final : format::Visitor {
  std::uint64_t sum = 0;
  bool on_event(const format::Event& event) override {
    sum += event.timestamp_ns + event.values.front().bits;
    return true;
  }
};

void report(benchmark::State& state, std::uint64_t events_a_round) {
  const auto rounds = static_cast<std::uint64_t>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(rounds * sample_trace().size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(rounds * events_a_round));
}

void memcpy_same_bytes(benchmark::State& state) {
  const Bytes& from = sample_trace();
  Bytes to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  report(state, 0);
}

// The argument is the size of the chunks.
void decode_events(benchmark::State& state) {
  const auto chunk_bytes = static_cast<std::size_t>(state.range(0));
  const Bytes& trace = sample_trace();
  std::uint64_t events = 0;
  for (auto _ : state) {
    Reader reader;
    format::Decoder decoder(reader);
    std::span<const std::uint8_t> rest = trace;
    while (!rest.empty()) {
      const std::size_t step = std::min(chunk_bytes, rest.size());
      if (!decoder.feed(rest.first(step))) {
        return state.SkipWithError("the sample trace doesn't decode");
      }
      rest = rest.subspan(step);
    }
    if (!decoder.finish()) {
      return state.SkipWithError("the sample trace doesn't decode");
    }
    events = decoder.stats().events;
    benchmark::DoNotOptimize(reader.sum);
  }
  report(state, events);
  state.counters["bytes_per_event"] =
      static_cast<double>(sample_trace().size()) / static_cast<double>(events);
}

void decode_gzip(benchmark::State& state) {
  const Bytes& packed = sample_gzip();
  std::uint64_t events = 0;
  for (auto _ : state) {
    Reader reader;
    format::Decoder decoder(reader);
    format::Gunzip gunzip([&](std::span<const std::uint8_t> bytes) { return decoder.feed(bytes); });
    if (!gunzip.feed(packed) || !gunzip.finish() || !decoder.finish()) {
      return state.SkipWithError("the sample trace doesn't decode");
    }
    events = decoder.stats().events;
    benchmark::DoNotOptimize(reader.sum);
  }
  report(state, events);
}

BENCHMARK(memcpy_same_bytes)->Unit(benchmark::kMillisecond);
BENCHMARK(decode_events)
    ->Arg(64 << 20)
    ->Arg(256 << 10)
    ->Arg(4 << 10)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(decode_gzip)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dial9

BENCHMARK_MAIN();
