// SPDX-License-Identifier: Apache-2.0
#include "flame_trace.h"

#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/heap_trace.h"

namespace web_test {
namespace {

using dial9::analysis::testing::CpuTrace;
using dial9::analysis::testing::HeapTrace;
using dial9::format::Encoder;
using dial9::format::FieldType;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kStart = 5'000'000 * kMs;
constexpr std::uint64_t kTask = 5;
constexpr std::uint64_t kSpan = 0x8000'0000'0000'0001;
constexpr std::uint64_t kPriceCart = 0x1010, kServe = 0x2010, kLog = 0x3010, kKvGet = 0x4010;

void symbols(Encoder& out) {
  out.schema(120, "SymbolTableEntry", false,
             {{"addr", FieldType::kVarint},
              {"size", FieldType::kVarint},
              {"symbol_name", FieldType::kPooledString}});
  std::uint64_t address = 0x1000;
  for (const char* name : {"price_cart", "serve_request", "write_log", "kv_get"}) {
    out.begin_untimed(120);
    out.varint(address);
    out.varint(0x100);
    out.pooled_string(name);
    address += 0x1000;
  }
}

void span(Encoder& out) {
  const FieldType number = FieldType::kVarint;
  out.schema(121, "SpanEnter:shop.cc:1:1", true,
             {{"worker_id", number},
              {"span_id", number},
              {"parent_span_id", number, true},
              {"span_name", FieldType::kPooledString}});
  out.schema(122, "SpanExit:shop.cc:1:1", true,
             {{"worker_id", number}, {"span_id", number}, {"completed", FieldType::kBool}});
  out.begin(121, kStart + 100 * kMs);
  out.varint(0);
  out.varint(kSpan);
  out.absent();
  out.pooled_string("checkout");
  out.begin(122, kStart + 200 * kMs);
  out.varint(0);
  out.varint(kSpan);
  out.boolean(true);
}

}  // namespace

std::vector<std::uint8_t> flame_trace() {
  CpuTrace made;
  made.builder.clock_sync(kStart, 1'782'136'202'000'000'000);
  made.builder.poll(kStart + 100 * kMs, kStart + 200 * kMs, 0, kTask, "shop.cc:1");
  made.module("/srv/shop", 0x10'0000, kStart, 0, 1, "2222");
  made.books(kStart + 400 * kMs, 1'000, 60 * kMs, 50, 0);
  for (std::uint64_t ms = 101; ms <= 120; ++ms) {
    made.add(
        {.at_ns = kStart + ms * kMs, .frames = {kPriceCart, kServe}, .task = kTask, .span = kSpan});
  }
  made.builder.off_cpu({.at_ns = kStart + 121 * kMs,
                        .proven_ns = 48 * kMs,
                        .share_ns = 2 * kMs,
                        .cause = "socket",
                        .call = "recv",
                        .frames = {kKvGet, kServe},
                        .task = kTask,
                        .span = kSpan});
  made.builder.off_cpu({.at_ns = kStart + 175 * kMs,
                        .proven_ns = 10 * kMs,
                        .cause = "lock",
                        .call = "futex",
                        .frames = {kKvGet, kServe},
                        .task = kTask,
                        .span = kSpan});
  for (std::uint64_t ms = 301; ms <= 330; ++ms) {
    made.add({.at_ns = kStart + ms * kMs, .frames = {kLog, kServe}});
  }
  symbols(made.builder.encoder());
  span(made.builder.encoder());
  return made.builder.take();
}

std::vector<std::uint8_t> flame_before_trace() {
  CpuTrace made;
  made.builder.metadata(kStart, "boot_id", "abcd-7");
  made.module("/srv/shop", 0x10'0000, kStart, 0, 1, "1111");
  made.books(kStart + 400 * kMs, 1'000, 40 * kMs, 40, 0);
  for (std::uint64_t ms = 1; ms <= 40; ++ms) {
    made.add({.at_ns = kStart + ms * kMs,
              .frames = {ms <= 30 ? kPriceCart : kLog, kServe},
              .task = kTask,
              .span = kSpan});
  }
  symbols(made.builder.encoder());
  return made.builder.take();
}

std::vector<std::uint8_t> heap_trace() {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t at_ns = kStart + i * kMs;
    made.alloc({.at_ns = at_ns, .addr = 1 + i, .frames = {kPriceCart, kServe}});
    if (i % 10 == 0) made.free(at_ns + kMs / 2, 1 + i, at_ns);
  }
  made.profile(kStart + 100 * kMs, 0, 5, 90);
  symbols(made.builder().encoder());
  return made.builder().take();
}

}  // namespace web_test
