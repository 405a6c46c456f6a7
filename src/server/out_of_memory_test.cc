// Memory may end anywhere in a request or a load: nothing that was taken is kept, and what is asked
// next is answered right.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/heap_trace.h"
#include "base/testing/failing_memory.h"
#include "format/encoder.h"
#include "server/gzip.h"
#include "server/routes.h"
#include "server/testing/sample_runs.h"

namespace {

constexpr int kAll = -1;
constinit int g_zlib_pieces = kAll;  // that malloc gives to zlib before it gives no more

voidpf give_to_zlib(voidpf /*opaque*/, uInt items, uInt bytes) {
  if (g_zlib_pieces == 0) return nullptr;
  if (g_zlib_pieces != kAll) --g_zlib_pieces;
  return std::calloc(items, bytes);
}

void take_from_zlib(voidpf /*opaque*/, voidpf piece) { std::free(piece); }

}  // namespace

// Before zlib's own, of which it makes one whose malloc fails where the reader leaves it to that.
extern "C" int inflateInit2_(z_streamp stream, int bits, const char* version, int size) {
  static const auto own =
      reinterpret_cast<decltype(&inflateInit2_)>(::dlsym(RTLD_NEXT, "inflateInit2_"));
  if (stream->zalloc == nullptr) {
    stream->zalloc = give_to_zlib;
    stream->zfree = take_from_zlib;
  }
  return own(stream, bits, version, size);
}

namespace dial9::server {
namespace {

using dial9::testing::FailingMemory;
using dial9::testing::held_pieces;
using testing::Bytes;
using Ends = FailingMemory::Ends;

// Samples on and off the CPU, sockets, locks, a module; a task, a span.
Bytes sampled() {
  analysis::testing::CpuTrace made;
  auto& builder = made.builder;
  const std::uint64_t begin_ns = testing::kOriginNs;
  made.module("/bin/app", 0x1000, begin_ns);
  made.books(begin_ns + 9'000'000, 1'000, 1'000'000, 1, 0);
  for (std::uint64_t i = 1; i <= 9; ++i) {
    const std::uint64_t at_ns = begin_ns + i * 1'000'000;
    builder.poll(at_ns, at_ns + 400'000, 0, 7);
    made.add({.at_ns = at_ns + 100'000,
              .frames = {0x1004 + i % 3 * 16, 0x1200, 0x1300},
              .label = "shop",
              .task = 7,
              .span = 0x1f});
    builder.off_cpu({.at_ns = at_ns + 500'000,
                     .proven_ns = 300'000,
                     .cause = i % 3 == 0 ? "lock" : "socket",
                     .call = i % 3 == 0 ? "" : "recv",
                     .frames = {0x1004, 0x1200},
                     .task = 7,
                     .span = 0x1f});
    builder.lock_wait(at_ns + 700'000, 50'000, 7, 0xbeef);
    builder.blocking_call(at_ns + 800'000, 60'000, 7, "read", 7);
  }
  builder.platform_stall(begin_ns + 2'000'000, begin_ns + 3'000'000, "steal", 900'000);
  builder.metadata(begin_ns, "service", "checkout");
  return builder.take();
}

// A span of task 7's with samples in it, and a dump of the task.
Bytes spanned() {
  using format::FieldType;
  analysis::testing::CpuTrace made;
  const std::uint64_t begin_ns = testing::kOriginNs;
  constexpr std::uint64_t kSpan = 0x8000'0000'0000'001f;
  made.module("/bin/app", 0x1000, begin_ns);
  made.books(begin_ns + 9'000'000, 1'000, 1'000'000, 3, 0);
  format::Encoder& out = made.builder.encoder();
  out.schema(200, "SpanEnter:shop.cc:1:1", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"parent_span_id", FieldType::kVarint, true},
              {"span_name", FieldType::kPooledString}});
  out.schema(201, "SpanExit:shop.cc:1:1", true,
             {{"worker_id", FieldType::kVarint}, {"span_id", FieldType::kVarint}});
  out.schema(202, "TaskDumpEvent", true,
             {{"task_id", FieldType::kVarint}, {"callchain", FieldType::kPooledStackFrames}});
  out.begin(200, begin_ns + 500'000);
  out.varint(0);
  out.varint(kSpan);
  out.absent();
  out.pooled_string("checkout");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const std::uint64_t at_ns = begin_ns + i * 1'000'000;
    made.builder.poll(at_ns, at_ns + 400'000, 0, 7);
    made.add({.at_ns = at_ns + 100'000, .frames = {0x1004, 0x1200}, .task = 7, .span = kSpan});
  }
  out.begin(202, begin_ns + 4'000'000);
  out.varint(7);
  out.pooled_stack(std::vector<std::uint64_t>{0x1010, 0x1200});
  out.begin(201, begin_ns + 5'000'000);
  out.varint(0);
  out.varint(kSpan);
  return made.builder.take();
}

Bytes allocations() {
  analysis::testing::HeapTrace made;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    made.alloc({.at_ns = testing::kOriginNs + i * 1'000,
                .addr = 0x1000 * i,
                .frames = {0xA + i % 4, 0xB},
                .label_value = "shop"});
    if (i % 2 == 0) {
      made.free(testing::kOriginNs + i * 1'000 + 500, 0x1000 * i, testing::kOriginNs + i * 1'000);
    }
  }
  made.profile(testing::kOriginNs + 1'000'000, 0, 0, 10);
  return made.builder().take();
}

class Namer final : public analysis::FrameNamer {
 public:
  std::vector<symbolize::Frame> frames(std::string_view /*path*/, std::string_view /*build_id*/,
                                       std::uint64_t address, bool /*is_return*/) override {
    return {{.name = "a function with a name that is long, at " + std::to_string(address),
             .file = "/src/a/folder/with/a/name/that/is/long.cc",
             .line = 7}};
  }
};

// Does it with memory that ends at one place after the other, until it gets through.
// Templates: a std::function would hold a piece.
template <class Work, class Check>
void at_each_end(const Work& work, const Check& check) {
  for (const Ends ends : {Ends::kOnce, Ends::kForGood}) {
    bool was_refused = true;
    for (std::uint64_t pieces = 0; was_refused; pieces = dial9::testing::next_end(pieces)) {
      FailingMemory memory;
      FailingMemory::take_part(&memory);
      memory.end_after(pieces, ends);
      try {
        work();
      } catch (const std::bad_alloc&) {
      }
      was_refused = memory.restore();
      FailingMemory::take_part(nullptr);
      check(pieces);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

Bytes gzipped() {
  const Bytes bytes = testing::dense_trace(3'000);
  const std::string packed =
      gzip_if_smaller({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return {packed.begin(), packed.end()};
}

struct Kind {
  const char* name;
  Bytes (*bytes)();
};
const Kind kKinds[] = {{"a", testing::sample_trace},
                       {"overlapping", testing::overlapping_trace},
                       {"ticks", [] { return testing::custom_only_trace(300); }},
                       {"dense", [] { return testing::dense_trace(3'000); }},
                       {"sampled", sampled},
                       {"spanned", spanned},
                       {"heap", allocations},
                       {"gzipped", gzipped}};

TEST(OutOfMemory, ALoadGivesAllBackWhereverMemoryEnds) {
  if (!dial9::testing::can_memory_fail()) GTEST_SKIP() << dial9::testing::kMemoryIsOthers;
  for (const Kind& kind : kKinds) {
    const Bytes bytes = kind.bytes();
    ASSERT_GT(testing::load_run(bytes)->trace().events, 0U);  // what is made once, is
    const std::int64_t before = held_pieces();
    at_each_end([&] { testing::load_run(bytes); },
                [&](std::uint64_t pieces) {
                  EXPECT_EQ(held_pieces(), before) << kind.name << ", piece " << pieces;
                });
  }
}

TEST(OutOfMemory, ALoadOfBytesInSmallPartsGivesAllBack) {
  if (!dial9::testing::can_memory_fail()) GTEST_SKIP() << dial9::testing::kMemoryIsOthers;
  const Bytes bytes = testing::sample_trace();
  const auto load = [&] {
    analysis::Loader loader;
    loader.begin_input("a");
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
      (void)loader.feed(std::span(bytes).subspan(at, std::min<std::size_t>(7, bytes.size() - at)));
    }
    (void)loader.end_input();
    (void)loader.finish();
  };
  load();
  const std::int64_t before = held_pieces();
  at_each_end(load, [&](std::uint64_t pieces) { EXPECT_EQ(held_pieces(), before) << pieces; });
}

class OutOfMemoryQueries : public ::testing::Test {
 protected:
  OutOfMemoryQueries() {
    auto source = std::make_unique<testing::MemoryRuns>();
    for (const Kind& kind : kKinds) source->add(kind.name, kind.bytes());
    store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
    service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{}, &namer_);
  }
  void SetUp() override {
    if (!dial9::testing::can_memory_fail()) GTEST_SKIP() << dial9::testing::kMemoryIsOthers;
  }
  Response ask(const std::string& target, Method method = Method::kGet, bool gzip = false) {
    Request request;
    request.method = method;
    request.target = "/api/v1/" + target;
    request.host = "localhost";
    request.accepts_gzip = gzip;
    return service_->handle(request);
  }
  void open(const std::string& run) {
    ASSERT_EQ(ask("runs/" + run + "/open", Method::kPost).status, 200U);
    store_->wait_idle();
    ASSERT_EQ(store_->state(run), RunState::kReady);
  }
  void ask_at_each_end(const std::string& target, bool gzip = false) {
    const Response right = ask(target, Method::kGet, gzip);
    ASSERT_EQ(right.status, 200U) << target << ": " << right.body;
    const std::int64_t before = held_pieces();
    at_each_end([&] { (void)ask(target, Method::kGet, gzip); },
                [&](std::uint64_t pieces) {
                  EXPECT_EQ(held_pieces(), before) << target << ", piece " << pieces;
                  if (pieces % 8 == 0) {
                    EXPECT_EQ(ask(target, Method::kGet, gzip).body, right.body) << target;
                  }
                });
    EXPECT_EQ(ask(target, Method::kGet, gzip).body, right.body) << target;
  }
  // Of a load of run "a". Where it got through although a piece was refused, it did without.
  void expect_all_or_no_memory(std::size_t polls, std::uint64_t pieces) {
    const auto status = store_->status("a");
    ASSERT_TRUE(status.has_value());
    ASSERT_TRUE(status->state == RunState::kReady || status->state == RunState::kFailed);
    if (status->state == RunState::kFailed) {
      EXPECT_NE(status->error.find("out of memory"), std::string::npos) << pieces;
    } else {
      EXPECT_EQ(store_->get("a")->trace().polls.size(), polls) << pieces;
    }
  }

  FailingMemory memory_;  // outlives the store's thread
  Namer namer_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<Service> service_;
};

TEST_F(OutOfMemoryQueries, OfARunAreAnsweredRightTheNextTime) {
  open("a");
  const std::string window = "t0=0&bin=1e6&bins=100";
  for (const std::string& target :
       {std::string("runs"), std::string("runs/a"), std::string("runs/a/summary"),
        std::string("runs/a/findings"), "runs/a/lanes?" + window, "runs/a/spans?" + window,
        "runs/a/queues?" + window, "runs/a/events?type=OrderPlaced&field=amount&" + window,
        std::string("runs/a/minimap?bins=50"), std::string("runs/a/tasks/7?limit=5"),
        "runs/a/tasks/7/lanes?" + window, std::string("runs/a/polls/0"),
        std::string("runs/a/spans/0"), std::string("runs/a/events/2"),
        std::string("runs/a/near?lane=1&at=30e6"), std::string("runs/a/search?q=7")}) {
    ask_at_each_end(target);
  }
  ask_at_each_end("runs/a/summary", true);
}

TEST_F(OutOfMemoryQueries, OfStacksAreAnsweredRightTheNextTime) {
  open("sampled");
  open("heap");
  const std::string window = "t0=0&bin=1e5&bins=100";
  for (const std::string& target :
       {std::string("runs/sampled/summary"), std::string("runs/sampled/findings"),
        "runs/sampled/samples?" + window, std::string("runs/sampled/samples/0"),
        std::string("runs/sampled/waits/0"), std::string("runs/sampled/flame"),
        std::string("runs/sampled/flame?lines=1&inverted=1"),
        std::string("runs/sampled/flame?of=offcpu"), std::string("runs/sampled/flame?of=time"),
        std::string("runs/sampled/flame?of=locks"), std::string("runs/sampled/flame?order=time"),
        std::string("runs/heap/flame?of=allocated"), std::string("runs/heap/flame?of=live"),
        std::string("runs/sampled/flame/moments?node=1"),
        std::string("runs/sampled/flame/butterfly?function=main"),
        std::string("runs/sampled/flame/diff?before_to=4e6")}) {
    ask_at_each_end(target);
  }
}

TEST_F(OutOfMemoryQueries, OfASpansStacksOfADumpAndOfTwoRunsAreAnsweredRightTheNextTime) {
  open("sampled");
  open("spanned");
  for (const std::string& target :
       {std::string("runs/spanned/dumps/0"), std::string("runs/spanned/spans/0"),
        std::string("runs/spanned/tasks/7"), std::string("runs/spanned/flame?span=0"),
        std::string("runs/spanned/flame?span=0&of=time"),
        std::string("runs/spanned/flame/moments?span=0&node=1"),
        std::string("runs/spanned/flame/diff?before_run=sampled"),
        std::string("runs/spanned/flame/diff?span=0&before_run=sampled"),
        std::string("runs/sampled/flame?task=7&thread=io&label=tenant%3Dshop&worker=0")}) {
    ask_at_each_end(target);
  }
}

TEST_F(OutOfMemoryQueries, ThatOpenARunLeaveOneThatCanBeOpened) {
  const auto is_sound = [&](std::uint64_t pieces) {
    store_->wait_idle();
    const auto status = store_->status("a");
    ASSERT_TRUE(status.has_value());
    EXPECT_NE(status->state, RunState::kLoading) << pieces;
    open("a");
    EXPECT_EQ(ask("runs/a/polls/0").status, 200U) << pieces;
    open("dense");
    ASSERT_TRUE(store_->close("a").has_value());
  };
  at_each_end([&] { (void)ask("runs/a/open", Method::kPost); }, is_sound);
  at_each_end(
      [&] {
        (void)ask("runs/a/open", Method::kPost);
        (void)ask("runs/a/close", Method::kPost);
      },
      is_sound);
}

TEST_F(OutOfMemoryQueries, AreNotAnsweredByALoadThatFoundNoMemory) {
  struct Stored {
    Bytes bytes;
    std::size_t polls;
  };
  for (const Stored& stored : {Stored{testing::sample_trace(), 10}, Stored{gzipped(), 3'000}}) {
    auto source = std::make_unique<testing::MemoryRuns>();
    source->add("a", stored.bytes);
    source->before_chunk = [this] { FailingMemory::take_part(&memory_); };  // the loading thread
    store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
    for (const Ends ends : {Ends::kOnce, Ends::kForGood}) {
      bool was_refused = true;
      for (std::uint64_t pieces = 0; was_refused; pieces = dial9::testing::next_end(pieces)) {
        memory_.end_after(pieces, ends);
        ASSERT_TRUE(store_->open("a").has_value());
        store_->wait_idle();
        was_refused = memory_.restore();
        expect_all_or_no_memory(stored.polls, pieces);
        ASSERT_TRUE(store_->close("a").has_value());
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// Its state is taken at the beginning, its window behind the first bytes.
TEST_F(OutOfMemoryQueries, AreNotAnsweredByALoadInWhichZlibFoundNoMemory) {
  auto source = std::make_unique<testing::MemoryRuns>();
  source->add("a", gzipped());
  store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
  for (int pieces = 0; pieces < 3; ++pieces) {
    g_zlib_pieces = pieces;
    ASSERT_TRUE(store_->open("a").has_value());
    store_->wait_idle();
    g_zlib_pieces = kAll;
    expect_all_or_no_memory(3'000, static_cast<std::uint64_t>(pieces));
    ASSERT_TRUE(store_->open("a").has_value());
    store_->wait_idle();
    EXPECT_EQ(store_->get("a")->trace().polls.size(), 3'000U) << pieces;
    ASSERT_TRUE(store_->close("a").has_value());
  }
}

}  // namespace
}  // namespace dial9::server
