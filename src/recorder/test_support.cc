// See test_support.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/test_support.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "dial9/event.h"
#include "recorder/dead_runs.h"

namespace dial9::internal {
namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "dial9-recorder-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::permissions(path_, fs::perms::owner_all, ignored);
  fs::remove_all(path_, ignored);
}

std::vector<std::uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> list_files(const std::string& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t bytes_under(const std::string& path) {
  std::uint64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) total += entry.file_size();
  }
  return total;
}

namespace {

// Readers show a number by its unit. Of the types that the original has, too, only what it writes.
void expect_units(const format::Schema& schema) {
  static const std::set<std::string, std::less<>> originals{"ClockSyncEvent", "WorkerParkEvent",
                                                            "WorkerUnparkEvent"};
  if (originals.contains(schema.name)) return;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const std::string_view name = schema.fields[i].name;
    const std::string_view unit = name.ends_with("_ns")     ? "ns"
                                  : name.ends_with("bytes") ? "bytes"
                                                            : "";
    if (unit.empty()) continue;
    EXPECT_EQ(schema.annotation(i, "unit"), unit) << schema.name << '.' << name;
  }
}

}  // namespace

Trace Trace::of(const std::vector<std::uint8_t>& bytes) {
  Trace trace;
  if (bytes.empty()) return trace;
  trace.trace_ = format::materialize(bytes);
  EXPECT_FALSE(trace.trace_.error) << trace.trace_.error->message;
  for (const format::Schema& schema : trace.trace_.schemas) expect_units(schema);
  return trace;
}

Trace Trace::of(const std::vector<SegmentBytes>& segments) {
  std::vector<std::uint8_t> all;
  for (const SegmentBytes& segment : segments) {
    all.insert(all.end(), segment.bytes.begin(), segment.bytes.end());
  }
  return of(all);
}

Trace Trace::of_directory(const std::string& path) {
  std::vector<SegmentBytes> segments;
  for (const std::string& name : list_files(path)) {
    std::uint64_t index = 0;
    bool is_active = false;
    if (parse_segment_name(name, &index, &is_active)) {
      segments.push_back({index, read_file(path + "/" + name)});
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentBytes& a, const SegmentBytes& b) { return a.index < b.index; });
  return of(segments);
}

const format::Schema& Trace::schema(const format::OwnedEvent& event) const {
  return trace_.schemas[event.schema];
}

std::uint64_t Trace::count(const std::string& event) const {
  return static_cast<std::uint64_t>(
      std::count_if(trace_.events.begin(), trace_.events.end(),
                    [&](const format::OwnedEvent& e) { return schema(e).name == event; }));
}

std::vector<std::uint64_t> Trace::numbers(const std::string& event,
                                          const std::string& field) const {
  std::vector<std::uint64_t> out;
  for (const auto& e : trace_.events) {
    if (schema(e).name == event) out.push_back(trace_.field(e, field)->bits);
  }
  return out;
}

std::vector<std::string> Trace::texts(const std::string& event, const std::string& field) const {
  std::vector<std::string> out;
  for (const auto& e : trace_.events) {
    if (schema(e).name == event) out.push_back(trace_.field(e, field)->text);
  }
  return out;
}

std::vector<std::uint64_t> Trace::stamps(const std::string& event) const {
  std::vector<std::uint64_t> out;
  for (const auto& e : trace_.events) {
    if (schema(e).name == event) out.push_back(e.timestamp_ns);
  }
  return out;
}

std::vector<LossRecord> Trace::losses() const {
  std::vector<LossRecord> out;
  for (const auto& e : trace_.events) {
    if (schema(e).name != "RecorderLossEvent") continue;
    out.push_back({trace_.field(e, "cause")->text, trace_.field(e, "count")->bits,
                   trace_.field(e, "first_ns")->bits, trace_.field(e, "last_ns")->bits});
  }
  return out;
}

std::uint64_t Trace::lost(const std::string& cause) const {
  std::uint64_t total = 0;
  for (const LossRecord& loss : losses()) {
    if (loss.cause == cause) total += loss.count;
  }
  return total;
}

std::string Trace::metadata(const std::string& key) const {
  std::string found = "(none)";
  for (const auto& e : trace_.events) {
    if (schema(e).name != "SegmentMetadataEvent") continue;
    found = "(none)";
    const auto& entries = trace_.field(e, "entries")->elements;
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      if (entries[i].text == key) found = entries[i + 1].text;
    }
  }
  return found;
}

SteppedRecorder::SteppedRecorder(RecorderOptions options, bool has_sources)
    : now_ns_(std::make_shared<std::atomic<std::uint64_t>>(kernel_now_ns())),
      messages_(std::make_shared<std::vector<std::string>>()) {
  options.on_message = [messages = messages_](const std::string& text) {
    messages->push_back(text);
  };
  CoreSeams seams;
  seams.clock.now_ns = [now = now_ns_] { return now->load(); };
  seams.has_thread = false;
  seams.has_sources = has_sources;
  Status status;
  core_ = RecorderCore::start(options, seams, &status);
  EXPECT_TRUE(status.ok()) << status.message();
}

SteppedRecorder::~SteppedRecorder() {
  if (core_ != nullptr) core_->stop(std::chrono::seconds(1));
}

Trace SteppedRecorder::read() {
  EXPECT_TRUE(core_->rotate(std::chrono::seconds(1)));
  return Trace::of(core_->sealed_segments());
}

std::vector<LeftFile> find_dead_runs(const std::string& root, const std::string& own_boot_id) {
  DeadRuns dead(root, own_boot_id, [](const std::string&) {});
  while (dead.step()) {
  }
  return {dead.files().begin(), dead.files().end()};
}

namespace {
DIAL9_EVENT(Kept, (interned, name), (std::uint64_t, number));
}  // namespace

void make_dead_run(const std::string& run) {
  const TempDir live;
  RecorderOptions options = RecorderOptions::disk(live.path());
  options.arena_bytes = std::uint64_t{256} << 10;
  SteppedRecorder recorder(options, false);
  for (std::uint64_t i = 0; i < 700; ++i) record(Kept{"first", i});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  for (std::uint64_t i = 700; i < 900; ++i) record(Kept{"second", i});
  std::filesystem::copy(recorder->status().directory, run);
}

}  // namespace dial9::internal
