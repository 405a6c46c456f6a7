// The whole answer to a request, without a socket.
// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/testing/trace_builder.h"
#include "server/testing/column_reader.h"
#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

using nlohmann::json;

class Routes : public ::testing::Test {
 protected:
  Routes() {
    auto source = std::make_unique<testing::MemoryRuns>();
    source->add("a", testing::sample_trace());
    source->add("ticks", testing::custom_only_trace(10));
    auto cut = testing::sample_trace();
    cut.erase(cut.end() - 3, cut.end());
    source->add("cut", cut);
    store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
    service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{});
  }

  Response ask(const std::string& target, Method method = Method::kGet) {
    Request request;
    request.method = method;
    request.target = "/api/v1/" + target;
    request.host = "localhost";
    request.if_none_match = if_none_match_;
    return service_->handle(request);
  }
  json get(const std::string& target) {
    const Response response = ask(target);
    EXPECT_EQ(response.status, 200u) << target << ": " << response.body;
    return json::parse(response.body);
  }
  void open(const std::string& run) {
    EXPECT_EQ(ask("runs/" + run + "/open", Method::kPost).status, 200u);
    store_->wait_idle();
  }

  std::unique_ptr<RunStore> store_;
  std::unique_ptr<Service> service_;
  std::string if_none_match_;
};

TEST_F(Routes, ListRuns) {
  const json list = get("runs");
  EXPECT_EQ(list["total"], 3);
  EXPECT_EQ(list["runs"][0]["run"], "a");
  EXPECT_EQ(list["runs"][0]["state"], "closed");
  EXPECT_TRUE(list["runs"][0]["is_sealed"].is_null()) << "not known";
}

TEST_F(Routes, AskForARunToBeOpenedFirst) {
  const Response response = ask("runs/a/summary");
  EXPECT_EQ(response.status, 409u);
  EXPECT_NE(response.body.find("open"), std::string::npos);
  open("a");
  EXPECT_EQ(get("runs/a")["state"], "ready");
  EXPECT_EQ(get("runs/a/summary")["events"], json::parse(ask("runs/a").body)["events"]);
}

TEST_F(Routes, SummariseARun) {
  open("a");
  const json summary = get("runs/a/summary");
  EXPECT_EQ(summary["origin_ns"], std::to_string(testing::kOriginNs));
  EXPECT_EQ(summary["duration_ns"], 99'000'000);
  EXPECT_EQ(summary["anchors"][0]["realtime_ns"], std::to_string(testing::kOriginRealtimeNs));
  EXPECT_EQ(summary["workers"].size(), 2u);
  EXPECT_EQ(summary["workers"][1]["busy_ns"], 50'000'000);
  EXPECT_TRUE(summary["workers"][0]["parked_ns"].is_null()) << "never seen to park: unknown";
  EXPECT_EQ(summary["loss_total"], 12);
  EXPECT_EQ(summary["loss"][0]["first_ns"], 40e6);
  EXPECT_EQ(summary["custom"][0]["type"], "OrderPlaced");
  EXPECT_EQ(summary["custom"][0]["count"], 3);
  EXPECT_EQ(summary["custom"][0]["fields"][0]["is_number"], true);
  EXPECT_EQ(summary["custom"][0]["fields"][1]["is_number"], false);
  EXPECT_TRUE(summary["truncated"].is_null());
}

TEST_F(Routes, SayWhatTheListsOfASummaryLack) {
  analysis::testing::TraceBuilder builder;
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    builder.poll(i * 10, i * 10 + 5, 1'000 + i, 7);
    if (i <= 2'000) {
      builder.metrics(i * 10, "runtime " + std::to_string(i), 1, 1);
      builder.metadata(i * 10, "key " + std::to_string(i), std::string(10'000, 'v'));
    }
  }
  auto source = std::make_unique<testing::MemoryRuns>();
  source->add("wide", builder.take());
  store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
  service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{});
  open("wide");
  const Response response = ask("runs/wide/summary");
  EXPECT_LT(response.body.size(), 12'000'000u);
  const json summary = json::parse(response.body);
  EXPECT_EQ(summary["workers"].size() + summary["left_out"]["workers"].get<std::size_t>(), 20'000u);
  EXPECT_EQ(summary["queues"].size() + summary["left_out"]["queues"].get<std::size_t>(), 4'000u);
  EXPECT_EQ(summary["left_out"]["metadata"], 1'000);
  EXPECT_FALSE(summary["left_out"].contains("custom"));
}

TEST_F(Routes, GiveTheRecordersBillAndNoneWhereTheTraceTellsNone) {
  open("a");
  EXPECT_TRUE(get("runs/a/summary")["bill"].is_null());
  analysis::testing::TraceBuilder builder;
  auto& out = builder.encoder();
  using format::FieldType;
  out.schema(100, "RecorderBillEvent", true,
             {{"elapsed_ns", FieldType::kVarint},
              {"collector_cpu_ns", FieldType::kVarint},
              {"host_cpu_ns", FieldType::kVarint},
              {"bytes", FieldType::kVarint},
              {"events", FieldType::kVarint},
              {"shed", FieldType::kVarint}});
  for (std::uint64_t i = 1; i <= 3; ++i) {
    out.begin(100, i * 1'000'000'000);
    for (const std::uint64_t value : {1'000'000'000U, 5'000U, 7'000U, 4'096U, 100U, 9U}) {
      out.varint(value);
    }
  }
  auto source = std::make_unique<testing::MemoryRuns>();
  source->add("billed", builder.take());
  store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
  service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{});
  open("billed");
  const json bill = get("runs/billed/summary")["bill"];
  EXPECT_EQ(bill["bills"], 3);
  EXPECT_EQ(bill["elapsed_ns"], 3'000'000'000);
  EXPECT_EQ(bill["host_cpu_ns"], 21'000);
  EXPECT_EQ(bill["sample_kernel_ns"], 0);
  EXPECT_EQ(bill["shed"], 27);
}

TEST_F(Routes, SayWhereATruncatedRunEnds) {
  open("cut");
  const json truncated = get("runs/cut/summary")["truncated"];
  EXPECT_NE(truncated["message"].get<std::string>().find("cut.bin"), std::string::npos);
  EXPECT_TRUE(truncated["offset"].is_number());
}

TEST_F(Routes, ShowARunOfCustomEventsOnly) {
  open("ticks");
  const json summary = get("runs/ticks/summary");
  EXPECT_EQ(summary["duration_ns"], 9'000'000);
  EXPECT_TRUE(summary["workers"].empty());
  const Response reply = ask("runs/ticks/events?t0=0&bin=1e6&bins=10&type=Tick&field=n");
  EXPECT_EQ(testing::ColumnReader(reply.body).f64("value").size(), 10u);
}

TEST_F(Routes, GiveATasksWholeLifeInPages) {
  open("a");
  const json life = get("runs/a/tasks/7?limit=3");
  EXPECT_EQ(life["spawn_loc"], "main.cc:7");
  EXPECT_EQ(life["polls_total"], 9);
  EXPECT_EQ(life["wakes_total"], 9);
  EXPECT_EQ(life["rows_total"], 20);
  EXPECT_EQ(life["busy_ns"], 9'000'000);
  EXPECT_EQ(life["delay"]["worst_ns"], 500'000);
  EXPECT_EQ(life["ended_ns"], 99e6);
  EXPECT_EQ(life["rows"][0]["what"], "spawn");
  EXPECT_EQ(life["rows"][1]["by"], "8");
  EXPECT_EQ(life["rows"][2]["what"], "poll");
  std::string all;
  double last = 0;
  for (int offset = 0; offset < 20; offset += 7) {
    const json page = get("runs/a/tasks/7?limit=7&offset=" + std::to_string(offset));
    for (const json& row : page["rows"]) {
      all += row["what"].get<std::string>().front();
      EXPECT_GE(row["at_ns"], last);
      last = row["at_ns"];
    }
  }
  EXPECT_EQ(all, "swpwpwpwpwpwpwpwpwpe");
}

TEST_F(Routes, TellEverythingOfOnePoll) {
  open("a");
  const json poll = get("runs/a/polls/0");
  EXPECT_EQ(poll["task"], "7");
  EXPECT_EQ(poll["dur_ns"], 1'000'000);
  bool has_waker = false;
  for (const json& fact : poll["facts"]) has_waker |= fact.value("task", "") == "8";
  EXPECT_TRUE(has_waker);
  EXPECT_EQ(get("runs/a/near?lane=1&at=30e6")["index"], 9);
  EXPECT_EQ(get("runs/a/near?lane=1&at=80e6")["what"], "park");
  EXPECT_EQ(ask("runs/a/near?lane=0&at=5e6").status, 404u);
}

TEST_F(Routes, TellTheFieldsOfAnEventWithWhatIsMissingAsNull) {
  open("a");
  const json event = get("runs/a/events/2");
  EXPECT_EQ(event["title"], "OrderPlaced");
  EXPECT_TRUE(event["facts"][0]["value"].is_null());
  EXPECT_EQ(event["facts"][1]["value"], "c");
  EXPECT_EQ(get("runs/a/spans/0")["title"], "Span checkout");
}

TEST_F(Routes, FindTasksPlacesSpansAndEvents) {
  open("a");
  EXPECT_EQ(get("runs/a/search?q=7")["hits"][0]["task"], "7");
  EXPECT_EQ(get("runs/a/search?q=OTHER.cc")["hits"][0]["task"], "8");
  EXPECT_EQ(get("runs/a/search?q=order")["hits"][0]["what"], "event");
  EXPECT_EQ(get("runs/a/search?q=CHECK")["hits"][0]["what"], "span");
  EXPECT_EQ(get("runs/a/search?q=main.cc&limit=1")["total"], 1);
}

TEST_F(Routes, CheckEveryNumberThatAClientSends) {
  open("a");
  for (const char* bad :
       {"lanes", "lanes?t0=0&bin=0&bins=10", "lanes?t0=0&bin=1&bins=0",
        "lanes?t0=0&bin=1&bins=5000", "lanes?t0=nan&bin=1&bins=10",
        "lanes?t0=0&bin=1&bins=10&first=3", "lanes?t0=0&bin=1&bins=10&first=1&count=2",
        "lanes?t0=0&bin=1&bins=10&exact=0", "spans?t0=0&bin=1&bins=10&first=99",
        "minimap?bins=9999", "minimap", "near?lane=2&at=0", "near?lane=0&at=-1", "search",
        "search?q=", "tasks/7?limit=0", "tasks/7?limit=2000"}) {
    EXPECT_EQ(ask("runs/a/" + std::string(bad)).status, 400u) << bad;
  }
  for (const char* missing : {"polls/10", "polls/-1", "polls/x", "spans/1", "events/3", "tasks/99",
                              "tasks/x", "events?t0=0&bin=1&bins=1&type=Nope"}) {
    EXPECT_EQ(ask("runs/a/" + std::string(missing)).status, 404u) << missing;
  }
}

TEST_F(Routes, NeverReachAFileThatIsNoRun) {
  for (const char* bad :
       {"runs/..%2f..%2fetc%2fpasswd", "runs/%2Fetc%2Fpasswd", "runs/../a", "runs/a%00"}) {
    EXPECT_GE(ask(bad).status, 400u) << bad;
    EXPECT_LT(ask(bad).status, 500u) << bad;
    EXPECT_GE(ask(std::string(bad) + "/open", Method::kPost).status, 400u) << bad;
  }
}

TEST_F(Routes, AnswerUnchangedDataWithoutABody) {
  open("a");
  const Response first = ask("runs/a/lanes?t0=0&bin=1e6&bins=10");
  ASSERT_FALSE(first.etag.empty());
  if_none_match_ = first.etag;
  const Response second = ask("runs/a/lanes?t0=0&bin=1e6&bins=10");
  EXPECT_EQ(second.status, 304u);
  EXPECT_TRUE(second.body.empty());
}

// Generations begin anew with each server, and a browser remembers: with one number for both, the
// page would show the numbers of another run under this one's name.
TEST_F(Routes, DontTakeTheReplyOfAnEarlierServerForTheirOwn) {
  open("a");
  if_none_match_ = ask("runs/a/summary").etag;
  EXPECT_EQ(ask("runs/a/summary").status, 304u);
  auto source = std::make_unique<testing::MemoryRuns>();
  source->add("a", testing::custom_only_trace(10));
  store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
  service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{});
  open("a");
  EXPECT_EQ(ask("runs/a/summary").status, 200u);
}

// Looking again for each run takes minutes for a directory of a thousand.
TEST_F(Routes, ListRunsWithOneLookAtTheDirectory) {
  class CountingRuns final : public RunSource {
   public:
    explicit CountingRuns(int& looks) : looks_(looks) {}
    std::string root() const override { return "counted"; }
    Result<std::vector<RunInfo>> list() override {
      ++looks_;
      std::vector<RunInfo> runs(100);
      for (std::size_t i = 0; i < runs.size(); ++i) runs[i].id = std::to_string(i);
      return runs;
    }
    Result<void> read(const RunInfo& /*run*/, std::size_t /*file*/,
                      const std::function<bool(std::span<const std::uint8_t>)>& /*take*/) override {
      return {};
    }

   private:
    int& looks_;
  };
  int looks = 0;
  store_ = std::make_unique<RunStore>(std::make_unique<CountingRuns>(looks), StoreOptions{});
  service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{});
  EXPECT_EQ(get("runs")["total"], 100);
  EXPECT_EQ(looks, 1);
}

TEST_F(Routes, FindWhatIsNearTheEndOfTheLongestTraces) {
  auto source = std::make_unique<testing::MemoryRuns>();
  analysis::testing::TraceBuilder builder;
  builder.poll(1, ~std::uint64_t{0} - 1, 0, 7);
  source->add("long", builder.take());
  store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
  service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{});
  open("long");
  EXPECT_EQ(get("runs/long/near?lane=0&at=1e19")["what"], "poll");
  EXPECT_LT(ask("runs/long/near?lane=0&at=18446744073709551616").status, 500u);
}

TEST_F(Routes, CloseARunAgain) {
  open("a");
  EXPECT_EQ(ask("runs/a/close", Method::kPost).status, 200u);
  EXPECT_EQ(ask("runs/a/summary").status, 409u);
}

TEST_F(Routes, RefuseAForeignHostBeforeAnythingElse) {
  Request request;
  request.target = "/api/v1/runs";
  request.host = "evil.example";
  EXPECT_EQ(service_->handle(request).status, 403u);
}

}  // namespace
}  // namespace dial9::server
