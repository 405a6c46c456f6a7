// What this folder's tests share: a recorder on a hand-moved clock, temporary directories, and
// recorded bytes as decoded events (by the format's decoder, an independent reader of what we
// write).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/materialize.h"
#include "recorder/recorder_core.h"

namespace dial9::internal {

inline constexpr std::uint64_t kTestMs = 1'000'000;
inline constexpr std::uint64_t kTestSecond = 1'000 * kTestMs;
inline constexpr std::uint64_t kTestBudget = std::uint64_t{16} << 20;

// A directory that goes with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::uint8_t> read_file(const std::string& path);
// Names in the directory, sorted; empty if there is none.
std::vector<std::string> list_files(const std::string& path);
std::uint64_t bytes_under(const std::string& path);

struct LossRecord {
  std::string cause;
  std::uint64_t count;
  std::uint64_t first_ns;
  std::uint64_t last_ns;
};

// Decoded segments, in order. A decode error fails the test that reads them.
class Trace {
 public:
  static Trace of(const std::vector<std::uint8_t>& bytes);
  static Trace of(const std::vector<SegmentBytes>& segments);
  static Trace of_directory(const std::string& path);

  std::uint64_t count(const std::string& event) const;
  // A field of every event of that type, in recorded order.
  std::vector<std::uint64_t> numbers(const std::string& event, const std::string& field) const;
  std::vector<std::string> texts(const std::string& event, const std::string& field) const;
  std::vector<std::uint64_t> stamps(const std::string& event) const;
  std::vector<LossRecord> losses() const;
  std::uint64_t lost(const std::string& cause) const;
  // Of the last SegmentMetadataEvent; "(none)" without it.
  std::string metadata(const std::string& key) const;
  const format::MaterializedTrace& raw() const { return trace_; }

 private:
  const format::Schema& schema(const format::OwnedEvent& event) const;
  format::MaterializedTrace trace_;
};

// A recorder without a thread, on a clock that the test moves.
class SteppedRecorder {
 public:
  // `has_sources` false: nothing is recorded but what the test records.
  explicit SteppedRecorder(RecorderOptions options = RecorderOptions::memory(kTestBudget),
                           bool has_sources = true);
  ~SteppedRecorder();

  RecorderCore& core() { return *core_; }
  RecorderCore* operator->() { return core_.get(); }
  void advance(std::uint64_t ns) { *now_ns_ += ns; }
  void step() { core_->step(); }
  // Seals what there is and decodes all that is sealed (memory ring).
  Trace read();
  const std::vector<std::string>& messages() const { return *messages_; }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> now_ns_;
  std::shared_ptr<std::vector<std::string>> messages_;
  std::shared_ptr<RecorderCore> core_;
};

// The recorder's files in all dead runs under root, oldest first.
std::vector<LeftFile> find_dead_runs(const std::string& root, const std::string& own_boot_id);

// Makes at `run` what a process leaves that died while it recorded: 700 events "Kept" (interned
// name; number, from 0) in its active segment, and 200 more in its buffers.
void make_dead_run(const std::string& run);

}  // namespace dial9::internal
