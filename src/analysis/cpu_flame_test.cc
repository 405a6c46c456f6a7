// The flame tree of CPU samples: what the filter takes, what weights stand for, whose names are
// used.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/cpu_flame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/loader.h"
#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/symbols.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::add_symbol;
using testing::TraceBuilder;

using Samples = testing::CpuTrace;

std::string folded(const Trace& trace, const SampleFilter& filter = {}, FrameNamer* namer = nullptr,
                   bool is_inverted = false) {
  return flame_folded(cpu_flame(trace, filter, namer, is_inverted).tree);
}

std::string notes_of(const CpuFlame& flame) {
  std::string text;
  for (const std::string& note : flame.heading.notes) text += note + "\n";
  return text;
}

TEST(CpuFlame, CountsPeriodsWhereTheRateIsNotKnownAndTimeWhereItIs) {
  Samples counted_only;
  counted_only.add({.at_ns = 10, .frames = {0x3, 0x1}, .weight = 4});
  const Trace counted_trace = counted_only.builder.load();
  EXPECT_EQ(folded(counted_trace), "0x1;0x3 4\n");
  Samples timed;
  timed.add({.at_ns = 10, .frames = {0x3, 0x1}, .weight = 4});
  timed.books(20, 100, 50'000'000, 4, 2);
  const CpuFlame flame = cpu_flame(timed.builder.load(), {}, nullptr);
  EXPECT_EQ(flame_folded(flame.tree), "0x1;0x3 40000000\n");
  EXPECT_NE(notes_of(flame).find("sampled at 100 Hz: 40.0 ms of the 50.0 ms of CPU time"),
            std::string::npos)
      << notes_of(flame);
  EXPECT_NE(notes_of(flame).find("2 samples were lost"), std::string::npos);
}

TEST(CpuFlame, CountsWhereTheRateChanged) {
  Samples samples;
  samples.add({.at_ns = 10, .frames = {0x1}});
  samples.books(20, 100, 1, 1, 0);
  samples.books(30, 99, 1, 1, 0);
  const CpuFlame flame = cpu_flame(samples.builder.load(), {}, nullptr);
  EXPECT_EQ(flame.tree.unit(), FlameUnit::kCount);
  EXPECT_NE(notes_of(flame).find("not one for all"), std::string::npos);
}

TEST(CpuFlame, TakesOnlyWhatTheFilterSays) {
  Samples samples;
  samples.add({.at_ns = 10, .frames = {0x1}, .label = "acme", .task = 5});
  samples.add({.at_ns = 20, .frames = {0x2}, .label = "bolt", .tid = 9, .thread = "other"});
  samples.add({.at_ns = 30, .frames = {0x3}, .weight = 2});
  const Trace trace = samples.builder.load();
  EXPECT_EQ(folded(trace, {.label = "tenant=acme"}), "0x1 1\n");
  EXPECT_EQ(folded(trace, {.label = "tenant"}), "0x1 1\n0x2 1\n");
  EXPECT_EQ(folded(trace, {.label = "ten"}), "");
  EXPECT_EQ(folded(trace, {.label = "tenantx"}), "");
  EXPECT_EQ(folded(trace, {.task = 5}), "0x1 1\n");
  EXPECT_EQ(folded(trace, {.thread = "other"}), "0x2 1\n");
  EXPECT_EQ(folded(trace, {.thread = "7"}), "0x3 2\n0x1 1\n");
  EXPECT_EQ(folded(trace, {.from_ns = 20, .to_ns = 30}), "0x2 1\n");
  EXPECT_NE(notes_of(cpu_flame(trace, {.task = 99}, nullptr)).find("none of the 3 samples"),
            std::string::npos);
}

TEST(CpuFlame, TakesTheSamplesOfAWorkerAndOfThePollsOfATask) {
  Samples samples;
  samples.builder.park(10, 3, 7);
  samples.builder.unpark(20, 3, TraceBuilder::kNoWait, 7);
  samples.builder.poll(30, 60, 3, 42);
  samples.builder.park(90, 3, 7);
  auto& out = samples.builder.encoder();
  const auto bare = [&](std::uint64_t at_ns, std::uint64_t frame, std::uint32_t tid) {
    out.schema(103, "CpuSampleEvent", true,
               {{"tid", FieldType::kU32}, {"callchain", FieldType::kPooledStackFrames}});
    out.begin(103, at_ns);
    out.u32(tid);
    out.pooled_stack(std::vector<std::uint64_t>{frame});
  };
  bare(40, 0x1, 7);
  bare(70, 0x2, 7);
  bare(40, 0x3, 8);
  const Trace trace = samples.builder.load();
  EXPECT_EQ(folded(trace, {.worker = 3}), "0x1 1\n0x2 1\n");
  const CpuFlame of_task = cpu_flame(trace, {.task = 42}, nullptr);
  EXPECT_EQ(flame_folded(of_task.tree), "0x1 1\n")
      << "where the writer doesn't say it, the task is that of the poll";
  EXPECT_NE(notes_of(of_task).find("1 sample doesn't say whose"), std::string::npos)
      << "of a thread that is no worker nobody knows" << notes_of(of_task);
}

void span(TraceBuilder& builder, std::uint64_t at_ns, std::uint64_t id, std::uint64_t parent) {
  auto& out = builder.encoder();
  out.schema(104, "SpanEnter:a.cc:1:1", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"parent_span_id", FieldType::kVarint, true},
              {"span_name", FieldType::kPooledString}});
  out.begin(104, at_ns);
  out.varint(0);
  out.varint(id);
  if (parent == 0) {
    out.absent();
  } else {
    out.present();
    out.varint(parent);
  }
  out.pooled_string("work");
}

TEST(CpuFlame, TakesTheSamplesOfASpanAndOfThoseInsideIt) {
  Samples samples;
  span(samples.builder, 5, 11, 0);
  span(samples.builder, 6, 12, 11);
  span(samples.builder, 7, 13, 0);
  samples.add({.at_ns = 10, .frames = {0x1}, .span = 11});
  samples.add({.at_ns = 20, .frames = {0x2}, .span = 12});
  samples.add({.at_ns = 30, .frames = {0x3}, .span = 13});
  samples.add({.at_ns = 40, .frames = {0x4}});
  const Trace trace = samples.builder.load();
  EXPECT_EQ(folded(trace, {.span = 11}), "0x1 1\n0x2 1\n");
  EXPECT_EQ(folded(trace, {.span = 12}), "0x2 1\n");
}

// Names by what it is asked, and remembers it.
class Namer final : public FrameNamer {
 public:
  std::vector<symbolize::Frame> frames(std::string_view path, std::string_view build_id,
                                       std::uint64_t address, bool is_return) override {
    ++asked;
    EXPECT_EQ(build_id, "ab");
    if (address == 0x99) return {};
    return {{.name = std::string(path) + "@" + std::to_string(address) + (is_return ? "r" : "")}};
  }
  void expect(std::string_view path, std::string_view,
              std::span<const std::uint64_t> addresses) override {
    for (const std::uint64_t address : addresses) {
      expected += std::string(path) + "@" + std::to_string(address) + " ";
    }
  }
  int asked = 0;
  std::string expected;
};

TEST(CpuFlame, NamesFramesByTheModuleAndTheOffsetInItsFile) {
  Samples samples;
  samples.module("/bin/app", 0x1000);
  samples.add({.at_ns = 10, .frames = {0x1010, 0x1020, 0x9000}});
  samples.add({.at_ns = 11, .frames = {0x1010, 0x1020, 0x9000}});
  samples.add({.at_ns = 12, .frames = {0x1099}});
  Namer namer;
  const Trace trace = samples.builder.load();
  EXPECT_EQ(folded(trace, {}, &namer), "0x9000;/bin/app@32r;/bin/app@16 2\napp+0x99 1\n");
  EXPECT_EQ(namer.asked, 3) << "each place once";
  EXPECT_EQ(namer.expected, "/bin/app@16 /bin/app@31 /bin/app@153 ")
      << "once, and the call, not what it returns to";
  EXPECT_EQ(folded(trace, {}, &namer, true), "/bin/app@16;/bin/app@32r;0x9000 2\napp+0x99 1\n");
}

// A function with another inlined into it, that two lines of the outer one call.
class LineNamer final : public FrameNamer {
 public:
  std::vector<symbolize::Frame> frames(std::string_view, std::string_view, std::uint64_t address,
                                       bool) override {
    return {{.name = "add",
             .file = "/a.h",
             .line = 1,
             .at_file = "/a.h",
             .at_line = 2,
             .is_inlined = true},
            {.name = "main",
             .file = "/m.cc",
             .line = 5,
             .at_file = "/m.cc",
             .at_line = static_cast<std::uint32_t>(address)}};
  }
};

TEST(CpuFlame, ShowsInlinedFunctionsAsFramesOfTheirOwnAndLinesWhereAsked) {
  Samples samples;
  samples.module("/bin/app", 0x1000);
  samples.add({.at_ns = 10, .frames = {0x1010}});
  samples.add({.at_ns = 11, .frames = {0x1020}});
  LineNamer namer;
  const Trace trace = samples.builder.load();
  const CpuFlame functions = cpu_flame(trace, {}, &namer);
  EXPECT_EQ(flame_folded(functions.tree), "main;add 2\n");
  EXPECT_EQ(functions.tree.nodes()[2].inlined, 2U);
  EXPECT_EQ(functions.tree.line(functions.tree.nodes()[1].frame), 5U) << "where it is written";
  const CpuFlame lines = cpu_flame(trace, {}, &namer, false, FrameBy::kLine);
  EXPECT_TRUE(lines.heading.by_line);
  EXPECT_EQ(flame_folded(lines.tree, true),
            "main (m.cc:16);add (a.h:2) 1\nmain (m.cc:32);add (a.h:2) 1\n");
}

// Of the kernel's addresses alone.
class KernelNamer final : public FrameNamer {
 public:
  std::vector<symbolize::Frame> frames(std::string_view, std::string_view, std::uint64_t,
                                       bool) override {
    return {};
  }
  std::vector<symbolize::Frame> kernel_frames(std::string_view boot_id, std::uint64_t address,
                                              bool) override {
    if (boot_id != "here" || address != 0xffffffff81000010) return {};
    return {{.name = "vfs_read"}};
  }
};

TEST(CpuFlame, NamesTheKernelsFunctionsOnlyForTheOneBootThatTheTraceIsOf) {
  for (const std::vector<std::string>& boots :
       {std::vector<std::string>{"here"}, {}, {"here", "there"}, {"there"}}) {
    Samples samples;
    for (const std::string& boot : boots) samples.builder.metadata(1, "kernel.boot_id", boot);
    samples.add({.at_ns = 10, .frames = {0xffffffff81000010, 0xffffffff81000099, 0x10}});
    KernelNamer namer;
    const CpuFlame flame = cpu_flame(samples.builder.load(), {}, &namer);
    const std::string leaf =
        boots.size() == 1 && boots[0] == "here" ? "vfs_read" : "0xffffffff81000010";
    EXPECT_EQ(flame_folded(flame.tree), "0x10;0xffffffff81000099;" + leaf + " 1\n");
    EXPECT_EQ(flame.tree.module(flame.tree.nodes()[2].frame), kKernelModule);
    EXPECT_EQ(flame.tree.module(flame.tree.nodes()[1].frame), "") << "nobody's";
  }
}

TEST(CpuFlame, NamesASampleByTheModulesOfItsMoment) {
  Samples samples;
  samples.module("/old.so", 0x1000, 100, 0, 1);
  samples.module("/new.so", 0x1000, 300, 200, 2);
  samples.add({.at_ns = 150, .frames = {0x1010}});
  samples.add({.at_ns = 250, .frames = {0x1010}});
  samples.add({.at_ns = 350, .frames = {0x1010}});
  Namer namer;
  EXPECT_EQ(folded(samples.builder.load(), {}, &namer), "/new.so@16 1\n/old.so@16 1\n0x1010 1\n")
      << "in between it is one or the other: neither is said";
}

TEST(CpuFlame, KeepsTheModulesOfTwoProcessesApart) {
  Samples samples;
  for (const std::string name : {"aaaa-1", "bbbb-2"}) {
    samples.builder.new_stream();
    samples.builder.metadata(1, "boot_id", name);
    samples.module("/" + name, 0x1000);
    samples.add({.at_ns = 150, .frames = {0x1010}});
  }
  Namer namer;
  EXPECT_EQ(folded(samples.builder.load(), {}, &namer), "/aaaa-1@16 1\n/bbbb-2@16 1\n");
}

TEST(CpuFlame, NamesByTheRecordersOwnSymbolsWhatNoFileNames) {
  Samples samples;
  samples.module("/bin/app", 0x1000);
  add_symbol(samples.builder.encoder(), {0x1010, 0x10, "work()"});
  samples.add({.at_ns = 10, .frames = {0x1018}});
  samples.add({.at_ns = 11, .frames = {0x1020}});
  const Trace trace = samples.builder.load();
  EXPECT_EQ(folded(trace), "app+0x20 1\nwork() 1\n") << "without any file";
  Namer namer;
  EXPECT_EQ(folded(trace, {}, &namer), "/bin/app@24 1\n/bin/app@32 1\n")
      << "files also know lines and what is inlined";
}

TEST(CpuFlame, PrefersSymbolsWithLinesToFiles) {
  Samples samples;
  samples.module("/bin/app", 0x1000);
  add_symbol(samples.builder.encoder(), {0x1010, 0x10, "work()", 0, "a.cc", 7});
  samples.add({.at_ns = 10, .frames = {0x1018}});
  Namer namer;
  EXPECT_EQ(folded(samples.builder.load(), {}, &namer), "work() 1\n");
}

// As the Rust dial9 names them: each address as it is met, one behind a call, too.
void add_names_of_addresses(format::Encoder& out) {
  add_symbol(out, {0x1010, 0, "leaf", 0, "leaf.rs", 3});
  add_symbol(out, {0x1010, 0, "inlined_leaf", 1, "leaf.rs", 9});
  add_symbol(out, {0x2010, 0, "poll", 0, "poll.rs", 364});
  add_symbol(out, {0x2010, 0, "drop_guard", 1, "drop.rs", 805});
  add_symbol(out, {0x2010, 0, "cell_get", 2, "cell.rs", 555});
  add_symbol(out, {0x3010, 0, "main", 0, "main.rs", 7});
}

TEST(CpuFlame, TakesNoFunctionForACallersThatIsInlinedBehindItsCall) {
  Samples samples;
  add_names_of_addresses(samples.builder.encoder());
  samples.add({.at_ns = 10, .frames = {0x1010, 0x2010, 0x3010}});
  samples.add({.at_ns = 11, .frames = {0x2010, 0x3010}});
  const Trace trace = samples.builder.load();
  const CpuFlame flame = cpu_flame(trace, {}, nullptr);
  EXPECT_EQ(flame_folded(flame.tree),
            "main;poll;drop_guard;cell_get 1\nmain;poll;leaf;inlined_leaf 1\n")
      << "where it was interrupted the names are of what ran";
  EXPECT_NE(notes_of(flame).find("what is inlined into 1 caller isn't known"), std::string::npos)
      << notes_of(flame);
  const CpuFlame lines = cpu_flame(trace, {}, nullptr, false, FrameBy::kLine);
  EXPECT_EQ(flame_folded(lines.tree, true),
            "main;poll;leaf (leaf.rs:3);inlined_leaf (leaf.rs:9) 1\n"
            "main;poll (poll.rs:364);drop_guard (drop.rs:805);cell_get (cell.rs:555) 1\n")
      << "nor is a line behind the call the caller's";
}

TEST(CpuFlame, AsksFilesWhatIsInlinedIntoACallerThatTheTraceNamesBehindItsCall) {
  Samples samples;
  samples.module("/bin/app", 0x2000);
  add_names_of_addresses(samples.builder.encoder());
  samples.add({.at_ns = 10, .frames = {0x1010, 0x2010}});
  Namer namer;
  const CpuFlame flame = cpu_flame(samples.builder.load(), {}, &namer);
  EXPECT_EQ(flame_folded(flame.tree), "/bin/app@16r;leaf;inlined_leaf 1\n");
  EXPECT_EQ(notes_of(flame).find("what is inlined"), std::string::npos) << notes_of(flame);
}

TEST(CpuFlame, KeepsTheSymbolsOfTwoProcessesApart) {
  Samples samples;
  for (const std::string name : {"aaaa-1", "bbbb-2"}) {
    samples.builder.new_stream();
    samples.builder.metadata(1, "boot_id", name);
    samples.add({.at_ns = 150, .frames = {0x1018}});
    if (name == "aaaa-1") add_symbol(samples.builder.encoder(), {0x1010, 0x10, "work()"});
  }
  EXPECT_EQ(folded(samples.builder.load()), "0x1018 1\nwork() 1\n");
}

TEST(CpuFlame, ShowsNamesThatTheirWriterLeftMangledAsPeopleReadThem) {
  std::string endless = "_ZN3app3runINS_1AIiiEE";
  for (const char last : std::string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    endless += std::string("NS_1AIS") + last + "_S" + last + "_EE";
  }
  Samples samples;
  samples.add({.at_ns = 10, .frames = {0x1018}});
  samples.add({.at_ns = 11, .frames = {0x1028}});
  samples.add({.at_ns = 12, .frames = {0x1038}});
  add_symbol(samples.builder.encoder(), {0x1010, 0x10, "_ZN5dial94pour3cupEi"});
  add_symbol(samples.builder.encoder(), {0x1020, 0x10, endless + "EEvv"});
  add_symbol(samples.builder.encoder(), {0x1030, 0x10, "_Zzz"});
  EXPECT_EQ(folded(samples.builder.load()), "_Zzz 1\napp::run<…>(…) 1\ndial9::pour::cup(int) 1\n");
}

TEST(CpuFlame, ShowsStacksWithoutTheirOuterFramesAsSuch) {
  Samples samples;
  samples.add({.at_ns = 10, .frames = {0x1}, .is_truncated = true});
  samples.add({.at_ns = 11, .frames = {}});
  EXPECT_EQ(folded(samples.builder.load()), "[no stack] 1\n[outer frames missing];0x1 1\n");
}

TEST(CpuFlame, SaysWhatToDoWhereThereAreNoSamples) {
  TraceBuilder builder;
  builder.poll(10, 20, 0, 1);
  EXPECT_NE(notes_of(cpu_flame(builder.load(), {}, nullptr)).find("DIAL9_CPU_PROFILE_ENABLED"),
            std::string::npos);
}

}  // namespace
}  // namespace dial9::analysis
