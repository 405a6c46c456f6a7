// See sample_runs.h.
// Strongest property: written with the engine's own builder of test traces.
// SPDX-License-Identifier: Apache-2.0
#include "server/testing/sample_runs.h"

#include <algorithm>

#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"
#include "format/encoder.h"

namespace dial9::server::testing {
namespace {

using analysis::testing::TraceBuilder;
using format::Encoder;
using format::FieldType;

constexpr std::uint64_t kMs = 1'000'000;
enum Type : std::uint16_t { kOrder = 100, kSpan };

void add_schemas(Encoder& out) {
  out.schema(kOrder, "OrderPlaced", true,
             {{"amount", FieldType::kF64, true}, {"note", FieldType::kString}});
  out.schema(kSpan, "checkout", true, {{"started_ns", FieldType::kVarint}});
  out.annotations(kSpan, {{0, "dial9.role", "span.duration"}, {0, "unit", "ns"}});
}

void poll(TraceBuilder& out, std::uint64_t worker, std::uint64_t task, std::uint64_t start_ns,
          std::uint64_t duration_ns, std::string_view loc) {
  out.poll(kOriginNs + start_ns, kOriginNs + start_ns + duration_ns, worker, task, loc);
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
  TraceBuilder out;
  add_schemas(out.encoder());
  out.clock_sync(kOriginNs, kOriginRealtimeNs);
  out.spawn(kOriginNs, 7, "main.cc:7");
  out.metrics(kOriginNs, "main", 0, 2);
  order(out.encoder(), 5 * kMs, 1, true, "a");
  order(out.encoder(), 6 * kMs, 2.5, true, "b");
  for (std::uint64_t i = 1; i <= 9; ++i) {
    out.wake(kOriginNs + i * 10 * kMs - kMs / 2, 7, 8);
    poll(out, 0, 7, i * 10 * kMs, kMs, "main.cc:7");
    if (i == 3) out.metrics(kOriginNs + 30 * kMs, "main", 5, 2);
  }
  poll(out, 1, 8, 20 * kMs, 50 * kMs, "other.cc:8");
  out.park(kOriginNs + 75 * kMs, 1, 4242, 1000);
  out.unpark(kOriginNs + 95 * kMs, 1, 4 * kMs, 4242, 1500);
  out.encoder().begin(kSpan, kOriginNs + 60 * kMs);
  out.encoder().varint(50 * kMs);
  out.loss(kOriginNs + 50 * kMs, "ring full", 12, kOriginNs + 40 * kMs, kOriginNs + 45 * kMs);
  order(out.encoder(), 90 * kMs, 0, false, "c");
  out.terminate(kOriginNs + 99 * kMs, 7);
  return out.take();
}

Bytes dense_trace(std::uint32_t polls) {
  TraceBuilder out;
  for (std::uint32_t i = 0; i < polls; ++i) poll(out, 0, i + 1, i * 2000ull, 1000, "dense.cc:1");
  return out.take();
}

Bytes overlapping_trace() {
  TraceBuilder out;
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
