// The built executable, run as a user runs it: output, errors and exit codes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/testing/trace_builder.h"
#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

using analysis::testing::TraceBuilder;
using nlohmann::json;
using testing::Ran;
using Bytes = std::vector<std::uint8_t>;

class Cli : public testing::CliTest {};

// 3 events from 1 s to 1.5 s, with an anchor.
Bytes small_trace() {
  TraceBuilder builder;
  builder.clock_sync(1'000'000'000, 1'790'000'000'000'000'000);
  builder.poll(1'000'000'000, 1'500'000'000, 0, 7, "app.cc:3");
  return builder.take();
}

Bytes faulty_trace() {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 500; ++i) {
    builder.poll(1'000'000'000 + i * 100'000, 1'000'050'000 + i * 100'000, 0, 1);
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    builder.poll(2'000'000'000 + i * 500'000'000, 2'030'000'000 + i * 500'000'000, 0, 2,
                 "slow.cc:9");
  }
  return builder.take();
}

Bytes gzipped(const Bytes& plain) {
  z_stream stream{};
  Bytes out(plain.size() + 1'000);
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes in = plain;
  stream.next_in = in.data();
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(Cli, InfoCountsEventsByType) {
  const Ran ran = dial9("info --json " + write("t.bin", small_trace()));
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  const json info = json::parse(ran.out);
  EXPECT_EQ(info["events"]["total"], 3);
  EXPECT_EQ(info["events"]["by_type"]["PollStartEvent"], 1);
  EXPECT_EQ(info["truncated"], false);
  EXPECT_TRUE(info["loss"]["total"].is_null()) << "nothing says that its writer tells of losses";
  EXPECT_EQ(info["time"]["begin"], "2026-09-21T14:13:20.000000000Z");
  EXPECT_EQ(info["time"]["duration_ns"], 500'000'000);
}

TEST_F(Cli, AFileBeyondALimitOfTheDecoderDoesNotEndTheLoad) {
  Bytes huge = small_trace();
  const Bytes strings = {0x03, 0xff, 0xff, 0xff, 0xff};  // 4 Gi of them, in one frame
  huge.insert(huge.end(), strings.begin(), strings.end());
  huge.resize(huge.size() + (70 << 20));
  const std::string good = write("good.bin", faulty_trace());
  const Ran ran = dial9("diagnose --json " + write("huge.bin", gzipped(huge)) + " " + good);
  EXPECT_EQ(ran.exit_code, kPartlyReadable) << ran.err;
  EXPECT_NE(ran.err.find("huge.bin"), std::string::npos);
  EXPECT_EQ(json::parse(ran.out)["trace"]["polls"], nullptr);
  EXPECT_EQ(json::parse(ran.out)["trace"]["polls_at_least"], 511);
}

TEST_F(Cli, InfoTextSaysWhatWasLost) {
  TraceBuilder builder;
  builder.loss(2'000, "buffer full", 7, 1'000, 1'500);
  const Ran ran = dial9("info " + write("t.bin", builder.take()));
  EXPECT_EQ(ran.exit_code, kOk);
  EXPECT_NE(ran.out.find("lost      7 events"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("buffer full"), std::string::npos);
}

// What the recorder writes of itself, a poll, and perhaps a loss of so many.
Bytes own_trace(std::uint64_t lost = 0) {
  TraceBuilder builder;
  builder.metadata(1'000, "dial9.writer", "dial9-cpp");
  if (lost != 0) builder.loss(1'000, "buffer full", lost, 1'000, 1'500);
  builder.poll(2'000'000, 3'000'000, 0, 7, "app.cc:3");
  return builder.take();
}

TEST_F(Cli, InfoSaysThatNothingWasLostOnlyWhereAWriterThatTellsWasReadToTheEnd) {
  const std::string own = write("own.bin", own_trace());
  const std::string foreign = write("foreign.bin", small_trace());
  Bytes cut = own_trace(5);
  cut.pop_back();
  const std::string truncated = write("cut.bin", cut);
  const std::string none = write("none.bin", Bytes(100, 'x'));
  struct Case {
    std::string files;
    std::string text;
    json total;
    int at_least;
  };
  for (const Case& one : {Case{own, "0 events", 0, 0},
                          {foreign, "unknown, the writer doesn't tell", nullptr, 0},
                          {own + " " + foreign, "unknown, the writer doesn't tell", nullptr, 0},
                          {truncated, "at least 5 events, not all could be read", nullptr, 5},
                          {none, "unknown, not all could be read, the writer", nullptr, 0}}) {
    const std::string text = dial9("info " + one.files).out;
    EXPECT_NE(text.find("lost      " + one.text), std::string::npos) << text;
    const json loss = json::parse(dial9("info --json " + one.files).out)["loss"];
    EXPECT_EQ(loss["total"], one.total) << one.files;
    EXPECT_EQ(loss["at_least"], one.at_least) << one.files;
    const json report = json::parse(dial9("diagnose --json " + one.files).out, nullptr, false);
    if (!report.is_discarded()) {
      EXPECT_EQ(report["trace"]["lost_events"], one.total) << one.files;
    }
  }
}

TEST_F(Cli, InfoOfWhatIsNoTraceTellsNoNumberOfIt) {
  for (const Bytes& bytes : {Bytes{}, Bytes(100, 'x'), Bytes{'T', 'R', 'C'}}) {
    const std::string file = write("none.bin", bytes);
    const Ran text = dial9("info " + file);
    EXPECT_EQ(text.exit_code, kUnreadable);
    EXPECT_TRUE(text.out.starts_with("no event could be read in 1 file\n")) << text.out;
    EXPECT_EQ(text.out.find("events by type"), std::string::npos) << text.out;
    const json info = json::parse(dial9("info --json " + file).out);
    for (const json& unknown : {info["events"]["total"], info["streams"], info["inversions"],
                                info["loss"]["total"], info["time"]["duration_ns"], info["cost"]}) {
      EXPECT_TRUE(unknown.is_null()) << info;
    }
    EXPECT_EQ(info["truncated"], true);
  }
}

TEST_F(Cli, InfoTakesGzipAndTheStandardInput) {
  const std::string file = write("t.bin.gz", gzipped(small_trace()));
  EXPECT_EQ(json::parse(dial9("info --json " + file).out)["events"]["total"], 3);
  EXPECT_EQ(json::parse(dial9("info --json - < " + file).out)["events"]["total"], 3);
}

TEST_F(Cli, InfoOfATruncatedTraceShowsWhatWasReadAndSaysSo) {
  Bytes cut = small_trace();
  cut.pop_back();
  const Ran ran = dial9("info --json " + write("t.bin", cut));
  EXPECT_EQ(ran.exit_code, kPartlyReadable);
  const json info = json::parse(ran.out);
  EXPECT_EQ(info["truncated"], true);
  EXPECT_TRUE(info["events"]["total"].is_null());
  EXPECT_EQ(info["events"]["at_least"], 2);
  EXPECT_TRUE(info["loss"]["total"].is_null());
  EXPECT_EQ(info["loss"]["at_least"], 0);
  const std::tuple<json, json, int> lower_bounds[] = {
      {info["streams"], info["streams_at_least"], 1},
      {info["inversions"], info["inversions_at_least"], 0},
      {info["time"]["duration_ns"], info["time"]["duration_at_least_ns"], 0}};
  for (const auto& [whole, at_least, read] : lower_bounds) {
    EXPECT_TRUE(whole.is_null()) << info;
    EXPECT_EQ(at_least, read) << info;
  }
  EXPECT_TRUE(info["files"][0]["error"]["offset"].is_number());
  EXPECT_NE(ran.err.find("t.bin"), std::string::npos);
  EXPECT_NE(ran.err.find("byte"), std::string::npos) << ran.err;
}

TEST_F(Cli, ACorruptFrameIsNamedByItsOffset) {
  Bytes bytes = small_trace();
  const std::size_t offset = bytes.size();
  bytes.push_back(0xEE);
  const Ran ran = dial9("info " + write("t.bin", bytes));
  EXPECT_EQ(ran.exit_code, kPartlyReadable);
  EXPECT_NE(ran.err.find(std::to_string(offset)), std::string::npos) << ran.err;
}

TEST_F(Cli, WhatIsNoTraceIsUnreadable) {
  EXPECT_EQ(dial9("info " + write("foreign", Bytes(100, 'x'))).exit_code, kUnreadable);
  EXPECT_EQ(dial9("info " + write("empty", {})).exit_code, kUnreadable);
  EXPECT_EQ(dial9("diagnose " + write("empty", {})).exit_code, kUnreadable);
  const Ran missing = dial9("info " + path("missing"));
  EXPECT_EQ(missing.exit_code, kUnreadable);
  EXPECT_NE(missing.err.find("missing"), std::string::npos);
}

TEST_F(Cli, WrongUsageHasACodeOfItsOwn) {
  EXPECT_EQ(dial9("").exit_code, kUsage);
  EXPECT_EQ(dial9("frobnicate").exit_code, kUsage);
  EXPECT_NE(dial9("frobnicate").err.find("no verb 'frobnicate'"), std::string::npos);
  EXPECT_EQ(dial9("info").exit_code, kUsage);
  EXPECT_EQ(dial9("diagnose --long-poll fast " + path("x")).exit_code, kUsage);
  EXPECT_EQ(dial9("diagnose --fail-on sometimes " + path("x")).exit_code, kUsage);
  EXPECT_EQ(dial9("cat --from 1s -").exit_code, kUsage);
}

TEST_F(Cli, HelpOfEveryVerbDocumentsTheExitCodes) {
  for (const std::string verb : {"", "info", "cat", "diagnose", "serve"}) {
    const Ran ran = dial9(verb + " --help");
    EXPECT_EQ(ran.exit_code, kOk);
    EXPECT_NE(ran.out.find("Exit codes:"), std::string::npos) << verb;
  }
  EXPECT_NE(dial9("--version").out.find("dial9 "), std::string::npos);
}

TEST_F(Cli, CatWritesEveryEventAsAJsonLine) {
  const Ran ran = dial9("cat " + write("t.bin", small_trace()));
  EXPECT_EQ(ran.exit_code, kOk);
  std::istringstream lines(ran.out);
  std::vector<json> events;
  for (std::string line; std::getline(lines, line);) {
    events.push_back(json::parse(line));
  }
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1]["type"], "PollStartEvent");
  EXPECT_EQ(events[1]["at_ns"], 1'000'000'000);
  EXPECT_EQ(events[1]["fields"]["spawn_loc"], "app.cc:3");
}

TEST_F(Cli, InfoSaysThatTheBillLacksWhatTheKernelTookForCpuSamples) {
  using format::FieldType;
  for (const bool has_samples : {false, true}) {
    format::Encoder out;
    out.schema(1, "RecorderBillEvent", true,
               {{"elapsed_ns", FieldType::kVarint},
                {"collector_cpu_ns", FieldType::kVarint},
                {"host_cpu_ns", FieldType::kVarint},
                {"bytes", FieldType::kVarint}});
    out.begin(1, 1'000'000'000);
    for (const std::uint64_t value : {1'000'000'000U, 5'000'000U, 2'000'000U, 4'096U}) {
      out.varint(value);
    }
    out.schema(2, "CpuSampleEvent", true, {{"tid", FieldType::kU32}});
    if (has_samples) {
      out.begin(2, 1'000'000'000);
      out.u32(7);
    }
    const std::string file = write("t.bin", out.take());
    const std::string text = dial9("info " + file).out;
    EXPECT_NE(text.find("0.20 % of a CPU in the service (estimated)"), std::string::npos) << text;
    EXPECT_EQ(text.find("for CPU samples isn't known") != std::string::npos, has_samples) << text;
    const json cost = json::parse(dial9("info --json " + file).out)["cost"];
    EXPECT_EQ(cost["sample_kernel_percent"], has_samples ? json() : json(0));
  }
}

TEST_F(Cli, CatShowsUnknownTypesNestedValuesAndInvalidUtf8) {
  using format::FieldType;
  format::Encoder encoder;
  encoder.schema(1, "Strange", false,
                 {{"text", FieldType::kString},
                  {"list", FieldType::kDynamicList},
                  {"stack", FieldType::kPooledStackFrames},
                  {"none", FieldType::kU8, true}});
  encoder.begin_untimed(1);
  encoder.string("a\xFF");
  encoder.list(2);
  encoder.element(FieldType::kBool);
  encoder.boolean(true);
  encoder.element(FieldType::kI64);
  encoder.i64(-5);
  const std::array<std::uint64_t, 1> frames{0xABC};
  encoder.pooled_stack(frames);
  encoder.absent();
  const Ran ran = dial9("cat " + write("t.bin", encoder.take()));
  const json event = json::parse(ran.out);
  EXPECT_EQ(event["at_ns"], nullptr);
  EXPECT_EQ(event["fields"]["text"], "a\xEF\xBF\xBD");
  EXPECT_EQ(event["fields"]["list"], json::parse("[true, -5]"));
  EXPECT_EQ(event["fields"]["stack"], json::parse("[\"0xabc\"]"));
  EXPECT_EQ(event["fields"]["none"], nullptr);
}

TEST_F(Cli, CatFiltersByTypeTimeAndNumber) {
  const std::string file = write("t.bin", faulty_trace());
  const auto count = [&](const std::string& options) {
    const Ran ran = dial9("cat " + options + " " + file);
    return std::count(ran.out.begin(), ran.out.end(), '\n');
  };
  EXPECT_EQ(count("--type PollEndEvent"), 510);
  EXPECT_EQ(count("--type PollEndEvent --type PollStartEvent"), 1'020);
  EXPECT_EQ(count("--limit 7"), 7);
  EXPECT_EQ(count("--from 1s --to 1.2s --type PollStartEvent"), 1);
}

TEST_F(Cli, CatSaysThatThereIsNoSuchTypeAndWhichMayBeMeant) {
  const std::string file = write("t.bin", small_trace());
  const Ran slip = dial9("cat --type PolStartEvent --type PollStartEvent " + file);
  EXPECT_EQ(slip.exit_code, kUsage);
  EXPECT_NE(slip.out, "") << "what there is";
  EXPECT_NE(slip.err.find("no event type 'PolStartEvent'"), std::string::npos) << slip.err;
  EXPECT_NE(slip.err.find("did you mean 'PollStartEvent'?"), std::string::npos) << slip.err;
  const Ran in_short = dial9("cat --type PollStart " + file);
  EXPECT_NE(in_short.err.find("did you mean 'PollStartEvent'?"), std::string::npos) << in_short.err;
  const Ran unknown = dial9("cat --type Nope " + file);
  EXPECT_EQ(unknown.exit_code, kUsage);
  EXPECT_EQ(unknown.err.find("did you mean"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("dial9 info"), std::string::npos) << unknown.err;
  const std::string longer = write("longer.bin", faulty_trace());
  EXPECT_EQ(dial9("cat --limit 1 --type PollStartEvent --type Nope " + longer).exit_code, kOk)
      << "not all was read";
}

TEST_F(Cli, CatEndsQuietlyWhenItsReaderGoesAway) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    builder.wake(i + 1, 1);
  }
  const std::string file = write("t.bin", builder.take());
  const Ran ran = shell("('" DIAL9_CLI "' cat " + file + "; echo \"code $?\" >&2) | head -1");
  EXPECT_NE(ran.err.find("code 0"), std::string::npos) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST_F(Cli, DiagnoseNamesWhatIsWrongAsJson) {
  const Ran ran = dial9("diagnose --json " + write("t.bin", faulty_trace()));
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  const json findings = json::parse(ran.out)["findings"];
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0]["kind"], "long-poll");
  EXPECT_EQ(findings[0]["severity"], "warning");
  EXPECT_EQ(findings[0]["count"], 10);
  EXPECT_EQ(findings[0]["worst_ns"], 30'000'000);
  EXPECT_EQ(findings[0]["where"], "slow.cc:9");
  EXPECT_EQ(findings[0]["task"], "2");
  EXPECT_TRUE(findings[0]["at"].is_string());
  EXPECT_FALSE(findings[0]["message"].get<std::string>().empty());
}

TEST_F(Cli, DiagnoseFailsAScriptOnlyAtItsBar) {
  const std::string file = write("t.bin", faulty_trace());
  EXPECT_EQ(dial9("diagnose --fail-on warning " + file).exit_code, kFindings);
  EXPECT_EQ(dial9("diagnose --fail-on critical " + file).exit_code, kOk);
  EXPECT_EQ(dial9("diagnose --fail-on warning --long-poll 1s " + file).exit_code, kOk);
}

TEST_F(Cli, DiagnoseOfATruncatedTraceDiagnosesWhatThereIs) {
  Bytes cut = faulty_trace();
  cut.pop_back();
  const Ran ran = dial9("diagnose --json - < " + write("t.bin", cut));
  EXPECT_EQ(ran.exit_code, kPartlyReadable);
  const json report = json::parse(ran.out);
  EXPECT_EQ(report["trace"]["truncated"], true);
  EXPECT_EQ(report["findings"][0]["kind"], "long-poll");
  const std::string file = write("whole.bin", faulty_trace());
  const json whole = json::parse(dial9("diagnose --json " + file).out)["trace"];
  for (const char* count :
       {"events", "duration", "workers", "tasks", "polls", "spans", "inversions"}) {
    const std::string ns = std::string_view(count) == "duration" ? "_ns" : "";
    EXPECT_EQ(report["trace"][count + ns], nullptr) << count;
    EXPECT_TRUE(report["trace"][std::string(count) + "_at_least" + ns].is_number()) << count;
    EXPECT_EQ(whole[count + ns], whole[std::string(count) + "_at_least" + ns]) << count;
  }
}

TEST_F(Cli, DiagnoseSaysWhenItsMemoryWasNotEnough) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    builder.poll(10 * i + 1, 10 * i + 5, 0, i + 1);
  }
  const Ran ran = dial9("diagnose --memory 1 " + write("t.bin", builder.take()));
  EXPECT_EQ(ran.exit_code, kPartlyReadable);
  EXPECT_NE(ran.out.find("memory limit"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("--memory"), std::string::npos) << "the cure";
}

TEST_F(Cli, AFileThatTheMemoryWasNotEnoughForIsNotCalledEmpty) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    builder.poll(10 * i + 1, 10 * i + 5, 0, i + 1);
  }
  const std::string first = write("a.bin", builder.take());
  const Ran ran = dial9("diagnose --memory 1 " + first + " " + write("b.bin", small_trace()));
  EXPECT_EQ(ran.exit_code, kPartlyReadable);
  EXPECT_EQ((ran.out + ran.err).find("empty"), std::string::npos) << ran.out << ran.err;
}

TEST_F(Cli, AFileThatIsNamedTwiceCountsOnce) {
  const std::string trace = write("t.bin", small_trace());
  const Ran ran = dial9("info --json " + trace + " '" + path("./t.bin") + "' " + trace);
  EXPECT_EQ(json::parse(ran.out)["events"]["total"], 3);
}

TEST_F(Cli, OutputThatCannotBeWrittenIsAnErrorOfItsOwn) {
  const std::string file = write("t.bin", small_trace());
  for (const std::string verb :
       {"info ", "info --json ", "cat ", "diagnose ", "diagnose --json "}) {
    const Ran ran = shell("'" DIAL9_CLI "' " + verb + file + " > /dev/full");
    EXPECT_EQ(ran.exit_code, kOutputLost) << verb;
    EXPECT_NE(ran.err.find("can't write the output"), std::string::npos) << verb;
  }
}

TEST_F(Cli, CatFromATimeBeyondTheClockShowsNothing) {
  const std::string file = write("t.bin", small_trace());
  EXPECT_EQ(dial9("cat --from 18446744073s " + file).out, "");
  EXPECT_NE(dial9("cat --to 18446744073s " + file).out, "");
}

TEST_F(Cli, AMemoryOfMoreThanThereIsIsWrongUsage) {
  const std::string file = write("t.bin", small_trace());
  EXPECT_EQ(dial9("diagnose --memory 17592186044416 " + file).exit_code, kUsage);  // 2^44 MiB
  EXPECT_EQ(dial9("diagnose --memory 0 " + file).exit_code, kUsage);
}

TEST_F(Cli, NamesInATraceCannotSendCommandsToTheTerminal) {
  format::Encoder encoder;
  encoder.schema(1, "evil\x1b]0;title\x07", false, {});
  encoder.begin_untimed(1);
  const std::string file = write("\x1b[31m.bin", encoder.take());
  for (const std::string verb : {"info ", "diagnose "}) {
    const Ran ran = dial9(verb + "'" + file + "' " + path("missing\x1b[2J"));
    EXPECT_EQ((ran.out + ran.err).find('\x1b'), std::string::npos) << ran.out << ran.err;
  }
  const Ran ran = dial9("info '" + file + "'");
  EXPECT_EQ(ran.exit_code, kOk);
  EXPECT_EQ((ran.out + ran.err).find('\x1b'), std::string::npos) << ran.out << ran.err;
}

// A frame's length alone may promise gigabytes; a small gzip file delivers them.
TEST_F(Cli, AnInflatedFrameOfGigabytesIsRefusedInBoundedMemory) {
  format::Encoder encoder;
  encoder.schema(1, "E", false, {{"f", format::FieldType::kU8}});
  encoder.begin_untimed(1);
  encoder.u8(1);
  Bytes bytes = encoder.take();
  const Bytes head = {0x03, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x3f};  // a text of 1 GiB
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.resize(bytes.size() + (80 << 20), 'x');
  const std::string file = write("t.bin.gz", gzipped(bytes));
  for (const std::string verb : {"info ", "diagnose ", "cat "}) {
    const Ran ran = dial9(verb + file);
    EXPECT_EQ(ran.exit_code, kPartlyReadable) << verb;
    EXPECT_NE(ran.err.find("more than 64 MiB"), std::string::npos) << ran.err;
  }
}

TEST_F(Cli, SeveralFilesAreOneTrace) {
  TraceBuilder first;
  first.poll_start(1'000, 0, 7);
  TraceBuilder second;
  second.poll_end(2'000, 0);
  const std::string a = write("a.bin", first.take());
  const std::string b = write("b.bin", second.take());
  const json report = json::parse(dial9("diagnose --json " + b + " " + a).out);
  EXPECT_EQ(report["trace"]["polls"], 1);
  EXPECT_EQ(report["trace"]["events"], 2);
}

}  // namespace
}  // namespace dial9::cli
