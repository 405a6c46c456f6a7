// The flame tree over the API, and the moments behind its frames.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/heap_trace.h"
#include "format/encoder.h"
#include "server/routes.h"
#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

using format::FieldType;
using nlohmann::json;

// Thread 5: three samples in work (0x1004), called by main (0x2000), one in main alone.
testing::Bytes sampled() {
  format::Encoder out;
  out.schema(1, "CpuSampleEvent", true,
             {{"tid", FieldType::kU32}, {"callchain", FieldType::kPooledStackFrames}});
  out.schema(2, "ModuleEvent", true,
             {{"path", FieldType::kString},
              {"build_id", FieldType::kString},
              {"begin", FieldType::kVarint},
              {"end", FieldType::kVarint},
              {"bias", FieldType::kVarint},
              {"epoch", FieldType::kVarint}});
  out.begin(2, testing::kOriginNs);
  out.string("/bin/app");
  out.string("ab");
  for (const std::uint64_t value : {0x1000, 0x3000, 0x1000, 1}) out.varint(value);
  for (std::uint64_t i = 0; i < 4; ++i) {
    out.begin(1, testing::kOriginNs + (i + 1) * 1'000'000);
    out.u32(5);
    out.pooled_stack(i < 3 ? std::vector<std::uint64_t>{0x1004, 0x2000}
                           : std::vector<std::uint64_t>{0x1fff});
  }
  return out.take();
}

// Thread 7, span 0x1f: 3 ms in recv, in work called by main; a lock for 1 ms, in main.
testing::Bytes waits() {
  analysis::testing::CpuTrace made;
  auto& builder = made.builder;
  made.module("/bin/app", 0x1000, testing::kOriginNs);
  made.books(testing::kOriginNs + 9'000'000, 1'000, 1'000'000, 1, 0);
  made.add({.at_ns = testing::kOriginNs + 500'000, .frames = {0x1004, 0x1200}, .span = 0x1f});
  builder.off_cpu({.at_ns = testing::kOriginNs + 1'000'000,
                   .proven_ns = 3'000'000,
                   .cause = "socket",
                   .call = "recv",
                   .frames = {0x1004, 0x1200},
                   .span = 0x1f});
  builder.off_cpu({.at_ns = testing::kOriginNs + 5'000'000,
                   .proven_ns = 1'000'000,
                   .cause = "lock",
                   .frames = {0x1200}});
  return builder.take();
}

class Namer final : public analysis::FrameNamer {
 public:
  std::vector<symbolize::Frame> frames(std::string_view path, std::string_view,
                                       std::uint64_t address, bool) override {
    EXPECT_EQ(path, "/bin/app");
    if (is_short) ++lacking;
    if (is_short) return {};
    if (address < 0x100) {
      return {{.name = "step", .at_file = "/src/step.h", .at_line = 4, .is_inlined = true},
              {.name = "work", .file = "/src/work.cc", .line = 7}};
    }
    return {{.name = "main"}};
  }
  std::vector<std::string> notes(std::string_view path, std::string_view build_id,
                                 bool with_lines) override {
    if (path != "/bin/app" || build_id != "ab") return {};
    std::vector<std::string> notes(refused, "another binary at /bin/app: not used");
    for (std::size_t i = 0; i < notes.size(); ++i) notes[i] += std::string(i, '!');
    if (with_lines) notes.push_back("no debug information of /bin/app");
    return notes;
  }
  std::uint64_t shortages() const override { return lacking; }
  std::size_t refused = 1;
  bool is_short = false;
  std::uint64_t lacking = 0;
};

class FlameRoute : public ::testing::Test {
 protected:
  FlameRoute() {
    auto source = std::make_unique<testing::MemoryRuns>();
    source_ = source.get();
    source->add("a", sampled());
    source->add("b", waits());
    store_ = std::make_unique<RunStore>(std::move(source), StoreOptions{});
    service_ = std::make_unique<Service>(AccessRules{}, *store_, std::span<const Asset>{}, &namer_);
    open("a");
    open("b");
  }
  void open(const std::string& run) {
    EXPECT_EQ(ask("runs/" + run + "/open", Method::kPost).status, 200U);
    store_->wait_idle();
  }
  Response ask(const std::string& target, Method method = Method::kGet) {
    Request request;
    request.method = method;
    request.target = "/api/v1/" + target;
    request.host = "localhost";
    return service_->handle(request);
  }
  json get(const std::string& target) {
    const Response response = ask(target);
    EXPECT_EQ(response.status, 200U) << target << ": " << response.body;
    return json::parse(response.body);
  }

  Namer namer_;
  testing::MemoryRuns* source_ = nullptr;  // the store's
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<Service> service_;
};

TEST_F(FlameRoute, GivesTheTreeWithTheNamersNames) {
  const json tree = get("runs/a/flame");
  EXPECT_EQ(tree["total"], 4);
  ASSERT_EQ(tree["nodes"].size(), 4U);
  EXPECT_EQ(tree["nodes"][1]["total"], 4);
  EXPECT_EQ(tree["functions"][tree["nodes"][1]["function"].get<int>()]["name"], "main");
  const json work = tree["functions"][tree["nodes"][2]["function"].get<int>()];
  EXPECT_EQ(work["name"], "work");
  EXPECT_EQ(work["file"], "/src/work.cc");
  EXPECT_EQ(work["line"], 7);
  EXPECT_FALSE(tree["nodes"][2].contains("inlined"));
  EXPECT_EQ(tree["nodes"][3]["inlined"], 3);
  EXPECT_EQ(get("runs/a/flame?inverted=1")["inverted"], true);
}

TEST_F(FlameRoute, GivesLinesWhereTheyAreAskedFor) {
  const json tree = get("runs/a/flame?lines=1");
  EXPECT_EQ(tree["by_line"], true);
  EXPECT_EQ(tree["total"], 4);
  const json step = tree["functions"][tree["nodes"][3]["function"].get<int>()];
  EXPECT_EQ(step["name"], "step");
  EXPECT_EQ(step["file"], "/src/step.h");
  EXPECT_EQ(step["line"], 4);
  const json work = tree["functions"][tree["nodes"][2]["function"].get<int>()];
  EXPECT_FALSE(work.contains("line")) << "which line of it runs isn't known";
  EXPECT_EQ(get("runs/a/flame")["by_line"], false);
  EXPECT_EQ(get("runs/a/flame/moments?lines=1&node=3")["total"], 3);
  EXPECT_EQ(get("runs/a/flame/butterfly?lines=1&function=work&module=app")["callees"]["by_line"],
            true);
  EXPECT_EQ(get("runs/a/flame/diff?lines=1")["by_line"], true);
  EXPECT_EQ(ask("runs/a/flame?lines=2").status, 400U);
}

TEST_F(FlameRoute, ShowsTheNamersNotesOnWhatTheTreeNames) {
  const json refused = "another binary at /bin/app: not used";
  const json lacking = "no debug information of /bin/app";
  const auto has = [](const json& notes, const json& note) {
    return std::count(notes.begin(), notes.end(), note);
  };
  const json notes = get("runs/a/flame")["notes"];
  EXPECT_EQ(has(notes, refused), 1);
  EXPECT_EQ(has(notes, lacking), 0) << "who shows no lines misses none";
  EXPECT_EQ(has(get("runs/a/flame?lines=1")["notes"], lacking), 1);
  EXPECT_EQ(has(get("runs/a/flame?thread=6")["notes"], refused), 0) << "nothing of it was named";
  const json both = get("runs/a/flame/butterfly?function=work&module=app");
  EXPECT_EQ(has(both["callers"]["notes"], refused), 1);
  const json diff = get("runs/a/flame/diff?before_to=1");
  EXPECT_EQ(has(diff["notes"], refused), 1);
  EXPECT_EQ(has(diff["notes_before"], refused), 0);
  namer_.refused = RequestNamer::kMostNotes + 7;
  EXPECT_EQ(has(get("runs/a/flame")["notes"], "7 notes more on the names of functions"), 1);
}

TEST_F(FlameRoute, TakesOnlyWhatItsParametersSay) {
  EXPECT_EQ(get("runs/a/flame?from=1500000&to=3000001")["total"], 2);
  EXPECT_EQ(get("runs/a/flame?thread=6")["total"], 0);
  EXPECT_EQ(get("runs/a/flame?nodes=2")["nodes_left_out"], 2);
  EXPECT_EQ(ask("runs/a/flame?span=0").status, 404U);
  EXPECT_EQ(ask("runs/a/flame?task=x").status, 400U);
  EXPECT_EQ(ask("runs/a/flame?nodes=0").status, 400U);
  EXPECT_EQ(ask("runs/a/flame?inverted=2").status, 400U);
  EXPECT_EQ(ask("runs/a/flame?label=" + std::string(600, 'x')).status, 400U);
}

TEST_F(FlameRoute, GivesTheMomentsOfAFrame) {
  const json moments = get("runs/a/flame/moments?node=2");
  EXPECT_EQ(moments["total"], 3);
  ASSERT_EQ(moments["moments"].size(), 3U);
  EXPECT_EQ(moments["moments"][0]["of"], "sample");
  EXPECT_EQ(moments["moments"][0]["sample"], 0);
  EXPECT_EQ(moments["moments"][0]["at_ns"], 1'000'000.0);
  EXPECT_EQ(get("runs/a/flame/moments?node=2&limit=1")["left_out"], 2);
  EXPECT_EQ(ask("runs/a/flame/moments?node=99").status, 404U);
  EXPECT_EQ(ask("runs/a/flame/moments").status, 400U);
}

TEST_F(FlameRoute, NamesTheFramesOfASamplesDetails) {
  const json frames = get("runs/a/samples/0")["frames"];
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0]["name"], "step");
  EXPECT_EQ(frames[0]["file"], "/src/step.h");
  EXPECT_EQ(frames[0]["line"], 4);
  EXPECT_EQ(frames[0]["inlined"], true);
  EXPECT_EQ(frames[1]["name"], "work");
  EXPECT_EQ(frames[1]["inlined"], false);
  EXPECT_EQ(frames[1]["line"], nullptr) << "which line runs isn't known";
  EXPECT_EQ(frames[2]["name"], "main");
  EXPECT_EQ(frames[0]["address"], "0x1004");
}

TEST_F(FlameRoute, NamesAllFramesOfAFunctionThatCallsItself) {
  analysis::testing::CpuTrace made;
  made.module("/bin/app", 0x1000, testing::kOriginNs);
  made.add({.at_ns = testing::kOriginNs + 500'000, .frames = {0x1004, 0x1200, 0x1200, 0x1200}});
  source_->add("recursive", made.builder.take());
  open("recursive");
  const json frames = get("runs/recursive/samples/0")["frames"];
  ASSERT_EQ(frames.size(), 5U) << "work with step inlined into it, and three of main";
  for (const std::size_t i : {2U, 3U, 4U}) EXPECT_EQ(frames[i]["name"], "main") << i;
}

TEST_F(FlameRoute, GivesWaitsByReasonAndTimeOnAndOffTheCpu) {
  const json off = get("runs/b/flame?of=offcpu");
  EXPECT_EQ(off["title"], "Off-CPU time (blocked)");
  EXPECT_EQ(off["total"], 4'000'000);
  EXPECT_EQ(off["functions"][off["nodes"][1]["function"].get<int>()]["name"], "[blocked: socket]");
  EXPECT_EQ(get("runs/b/flame?of=offcpu&top=none")["nodes"].size(), 4U)
      << "all, main, work, step inlined into it";
  const json time = get("runs/b/flame?of=time");
  EXPECT_EQ(time["total"], 5'000'000);
  EXPECT_EQ(time["unit"], "ns");
  EXPECT_EQ(get("runs/b/flame?of=locks")["total"], 1'000'000);
  const json live = get("runs/b/flame?of=live&counts=1");
  EXPECT_EQ(live["count"], 0);
  EXPECT_NE(live["notes"].dump().find("add_heap_samples()"), std::string::npos);
  EXPECT_EQ(get("runs/b/flame?of=time&order=time")["order"], "time");
  EXPECT_EQ(ask("runs/b/flame?of=weather").status, 400U);
  EXPECT_EQ(ask("runs/b/flame?top=hat").status, 400U);
  EXPECT_EQ(ask("runs/b/flame?order=random").status, 400U);
}

TEST_F(FlameRoute, GivesTheWaitsBehindAFrameAndTheirDetails) {
  const json moments = get("runs/b/flame/moments?of=offcpu&node=0");
  ASSERT_EQ(moments["moments"].size(), 2U);
  EXPECT_EQ(moments["moments"][0]["of"], "wait");
  EXPECT_FALSE(moments["moments"][0].contains("sample"));
  EXPECT_EQ(moments["moments"][0]["dur_ns"], 3'000'000);
  const json wait = get("runs/b/waits/0");
  EXPECT_EQ(wait["what"], "offcpu");
  EXPECT_EQ(wait["facts"][0]["value"], "recv");
  EXPECT_EQ(wait["dur_ns"], 3'000'000);
  EXPECT_EQ(wait["frames"][0]["name"], "step");
  EXPECT_EQ(wait["frames"][1]["name"], "work");
  EXPECT_TRUE(wait["task"].is_null());
  EXPECT_EQ(ask("runs/b/waits/2").status, 404U);
}

TEST_F(FlameRoute, TellsOfAWaitHowItIsKnownAndThatItWaitedForACpuThen) {
  analysis::testing::TraceBuilder builder;
  builder.off_cpu({.at_ns = testing::kOriginNs,
                   .proven_ns = 3'000'000,
                   .cause = "lock",
                   .is_exact = true,
                   .runnable_ns = 1'000'000});
  source_->add("exact", builder.take());
  open("exact");
  std::map<std::string, json> facts;
  const json exact = get("runs/exact/waits/0");
  for (const json& fact : exact["facts"]) facts[fact["name"]] = fact["value"];
  EXPECT_EQ(facts["Known"], "from switch to switch");
  EXPECT_EQ(facts["Then waited for a CPU"], 1'000'000);
  const json by_looks = get("runs/b/waits/0");
  for (const json& fact : by_looks["facts"]) {
    EXPECT_NE(fact["name"], "Known");
    EXPECT_NE(fact["name"], "Then waited for a CPU");
  }
}

TEST_F(FlameRoute, GivesCallersAndCalleesOfAFunction) {
  const json found = get("runs/b/flame/butterfly?of=offcpu&function=work&module=app");
  EXPECT_EQ(found["callees"]["total"], 3'000'000);
  EXPECT_EQ(found["callers"]["total"], 3'000'000);
  EXPECT_EQ(found["callers"]["whole"], 4'000'000) << "what percents are of";
  EXPECT_EQ(found["callers"]["nodes"].size(), 4U) << "all, work, main, [blocked: socket]";
  const json nobody = get("runs/b/flame/butterfly?of=offcpu&function=nobody")["callees"];
  EXPECT_EQ(nobody["count"], 0);
  EXPECT_NE(nobody["notes"].dump().find("no stack that is taken has this function"),
            std::string::npos)
      << nobody;
  EXPECT_EQ(ask("runs/b/flame/butterfly?function=" + std::string(2'000, 'x')).status, 400U);
}

TEST_F(FlameRoute, AReplyWhoseNamesLackOnlyForNowHasNoMarkByWhichItWouldBeKept) {
  for (const std::string target : {"runs/a/flame", "runs/a/samples/0", "runs/b/waits/0"}) {
    namer_.is_short = true;
    const Response without = ask(target);
    EXPECT_EQ(without.status, 200U);
    EXPECT_TRUE(without.etag.empty()) << target;
    namer_.is_short = false;
    const Response whole = ask(target);
    EXPECT_FALSE(whole.etag.empty()) << target;
    EXPECT_NE(whole.body, without.body);
  }
}

TEST_F(FlameRoute, ComparesWithAnotherRangeAndAnotherRun) {
  const json range = get("runs/a/flame/diff?from=3500000&before_to=3500000");
  EXPECT_EQ(range["whole"], json({3, 1}));
  EXPECT_EQ(range["before"], "a to 3500000 ns");
  const json run = get("runs/b/flame/diff?of=offcpu&before_run=a");
  EXPECT_EQ(run["whole"], json({nullptr, 4'000'000})) << "nothing was recorded there";
  EXPECT_NE(run["notes_before"].dump().find("no off-CPU samples"), std::string::npos);
  EXPECT_EQ(ask("runs/a/flame/diff?before_run=b").status, 400U) << "periods against time";
  EXPECT_EQ(ask("runs/a/flame/diff?before_run=c").status, 409U);
  EXPECT_EQ(ask("runs/a/flame/diff?before_from=x").status, 400U);
  EXPECT_TRUE(ask("runs/a/flame/diff").etag.empty()) << "another run's data has no mark here";
}

// Thread 7 in task 3 and span 0x1f, whose ids are in run b too.
testing::Bytes another_run() {
  analysis::testing::CpuTrace made;
  made.builder.metadata(testing::kOriginNs, "boot_id", "abcd-2");
  made.module("/bin/app", 0x1000, testing::kOriginNs, 0, 1, "cd");
  made.books(testing::kOriginNs + 9'000'000, 1'000, 1'000'000, 2, 0);
  for (const std::uint64_t span : {0x1f, 0x2f}) {
    made.add({.at_ns = testing::kOriginNs + span, .frames = {0x1200}, .task = 3, .span = span});
  }
  return made.builder.take();
}

TEST_F(FlameRoute, LooksForNoTaskSpanOrThreadOfARunInAnotherOne) {
  source_->add("other", another_run());
  open("other");
  const std::string diff = "runs/b/flame/diff?before_run=other";
  EXPECT_EQ(get(diff)["whole"], json({2'000'000, 1'000'000}));
  const json by_thread = get(diff + "&thread=7");
  EXPECT_EQ(by_thread["whole"], json({2'000'000, 1'000'000}));
  const std::string build =
      "before is of another build of app: functions are matched by name and module";
  EXPECT_EQ(
      by_thread["notes_compared"],
      json({build, "before isn't narrowed to the thread: its id says nothing in another run"}));
  const json by_task = get(diff + "&task=3");
  EXPECT_EQ(by_task["whole"][0], 2'000'000);
  EXPECT_EQ(by_task["notes_compared"],
            json({build, "before isn't narrowed to the task: its id says nothing in another run"}));
  EXPECT_EQ(get("runs/other/flame/diff?task=9&before_from=0&before_to=9000")["whole"], json({0, 0}))
      << "within a run an id is an id";
}

// A poll of 4 ms in which waits of 1 ms began, each with an estimate around it.
testing::Bytes poll_with_waits(std::initializer_list<std::uint64_t> at, std::uint64_t share_ns) {
  analysis::testing::CpuTrace made;
  made.builder.poll(testing::kOriginNs, testing::kOriginNs + 4'000'000, 3, 9);
  for (const std::uint64_t at_ns : at) {
    made.builder.off_cpu({.at_ns = testing::kOriginNs + at_ns,
                          .proven_ns = 1'000'000,
                          .share_ns = share_ns,
                          .cause = "pipe"});
  }
  made.builder.park(testing::kOriginNs + 9'000'000, 3, 7);
  return made.builder.take();
}

TEST_F(FlameRoute, CutsWhatIsEstimatedAroundAWaitToWhatItIsOf) {
  source_->add("short", poll_with_waits({1'000'000}, 5'000'000));
  open("short");
  const json longer = get("runs/short/flame?of=offcpu&worker=3&from=0&to=4000000");
  EXPECT_EQ(longer["total"], 4'000'000) << "an estimate is cut to the range";
  EXPECT_EQ(longer["uncertain"], false);
}

TEST_F(FlameRoute, SaysWhereItsSumIsLongerThanWhatItIsOf) {
  source_->add("short", poll_with_waits({1'000'000, 2'500'000}, 2'000'000));
  open("short");
  const json longer = get("runs/short/flame?of=offcpu&worker=3&from=0&to=4000000");
  EXPECT_EQ(longer["total"], 6'000'000);
  EXPECT_EQ(longer["uncertain"], true);
  EXPECT_NE(longer["notes"][0].get<std::string>().find("it took 4.00 ms: the sum is longer"),
            std::string::npos)
      << longer["notes"];
  EXPECT_EQ(get("runs/short/flame?of=offcpu&worker=3&from=0&to=9000000")["uncertain"], false);
}

TEST_F(FlameRoute, RefusesARangeThatEndsBeforeItBegins) {
  for (const std::string range : {"from=2&to=1", "before_from=2&before_to=1"}) {
    const Response refused = ask("runs/a/flame/diff?" + range);
    EXPECT_EQ(refused.status, 400U) << range;
    EXPECT_NE(refused.body.find("lies behind"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(get("runs/a/flame?from=2&to=2")["total"], 0);
}

TEST_F(FlameRoute, TellsThatHeapSamplesKnowNoNamesOfThreads) {
  analysis::testing::HeapTrace made;
  made.alloc({.at_ns = testing::kOriginNs, .tid = 7});
  source_->add("heap", made.builder().take());
  open("heap");
  EXPECT_EQ(get("runs/heap/flame?of=allocated&thread=7")["count"], 1);
  const json named = get("runs/heap/flame?of=allocated&thread=io");
  EXPECT_EQ(named["count"], 0);
  EXPECT_NE(named["notes"].dump().find("give the thread's id"), std::string::npos) << named;
  EXPECT_NE(named["notes"].dump().find("none of the 1 sample is taken"), std::string::npos);
}

TEST_F(FlameRoute, TellsTheCommandThatShowsTheSame) {
  EXPECT_EQ(
      get("runs/b/flame?from=1000&to=2000&worker=3&task=9&label=a%27b")["commands"],
      json({"dial9 flame --from 1000ns --to 2000ns --worker 3 --task 9 --label 'a'\\''b' b"}));
  EXPECT_EQ(get("runs/b/flame?of=time&inverted=1&parked=1")["commands"],
            json({"dial9 flame --inverted b", "dial9 offcpu --parked --inverted b"}));
  EXPECT_EQ(get("runs/b/flame?of=live&counts=1")["commands"],
            json({"dial9 heap --format folded --live --count b"}));
  EXPECT_EQ(get("runs/b/flame?lines=1")["commands"], json({"dial9 flame --lines b"}));
  EXPECT_EQ(get("runs/b/flame?of=locks")["commands"], json::array());
}

}  // namespace
}  // namespace dial9::server
