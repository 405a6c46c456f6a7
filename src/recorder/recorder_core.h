// One recorder, from start to stop: wires directory, arena, store, writer and collector together
// and runs the collector's thread. Strongest property: stop() returns by its deadline whatever the
// disk does, and nothing that a host thread may still touch is unmapped. Spec:
// docs/spec/recorder.md, "Life".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "recorder/collector.h"
#include "recorder/run_directory.h"
#include "recorder/segment_store.h"
#include "recorder/segment_writer.h"
#include "recorder/sibling_recovery.h"

namespace dial9::internal {

// What tests replace.
struct CoreSeams {
  CollectorSeams clock;     // empty functions: the kernel's clocks
  bool has_thread = true;   // false: the test calls step()
  bool has_sources = true;  // false: the collector records nothing of its own
  std::string boot_id;      // empty: make_boot_id()
};

class RecorderCore : public std::enable_shared_from_this<RecorderCore> {
 public:
  static std::shared_ptr<RecorderCore> start(const RecorderOptions& options, const CoreSeams& seams,
                                             Status* status);
  ~RecorderCore();

  // False in the child of a fork, where this object belongs to the parent: every call is inert.
  bool is_ours() const;
  // As given to start(); in a child of a fork, too.
  const RecorderOptions& options() const { return options_; }
  bool is_running() const;
  void enable();
  void disable();
  RecorderStatus status() const;
  void set_metadata(const std::string& key, const std::string& value);
  bool rotate(std::chrono::nanoseconds deadline);
  StopResult stop(std::chrono::nanoseconds deadline);
  std::vector<SegmentBytes> sealed_segments() const;
  Status dump(const std::string& path) const;

  // Without a thread: one pass by hand.
  std::uint64_t step();
  Arena& arena() { return *arena_; }

 private:
  RecorderCore(const RecorderOptions& options, const CoreSeams& seams);
  Status prepare();
  Status make_arena();
  void make_clock();
  Status start_thread();
  void run();
  void be_nice();
  std::uint64_t collector_now_ns() const;
  void finish();
  void remove_run(bool keeps_buffers);
  Metadata metadata() const;
  std::uint64_t metadata_version() const;
  void message(const std::string& text) const;
  std::uint64_t total_losses() const;
  bool has_buffer_file() const;
  void check_buffer_file();
  // `how`: what happened to the file.
  void end_by_cut_buffers(const std::string& how);
  void degrade(const std::string& why);
  void mark_stopped();

  const RecorderOptions options_;
  const CoreSeams seams_;
  const pid_t pid_;
  const std::uint32_t process_;
  std::string boot_id_;
  std::string clock_text_;
  std::optional<RunDirectory> run_;
  std::unique_ptr<Arena> arena_;
  // The arena's file, as it was made; st_ino 0: it has none.
  struct stat buffer_file_{};
  std::uint64_t next_file_check_ns_ = 0;
  std::optional<ClockCalibration> calibration_;
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<SegmentWriter> writer_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<SiblingRecovery> siblings_;  // null: dead runs aren't looked at
  bool is_nice_ = false;
  std::thread thread_;

  mutable std::mutex mutex_;      // guards all below
  std::condition_variable wake_;  // collector: something was asked for
  std::condition_variable done_;  // callers: it was done
  bool is_stopping_ = false;
  bool may_finish_ = false;  // and threads have had time to end the record call that they are in
  bool is_finished_ = false;
  bool is_enabled_ = false;
  bool is_complete_ = false;  // the last seal took everything
  std::uint64_t rotations_asked_ = 0;
  std::uint64_t rotations_done_ = 0;
  std::uint64_t rotations_failed_ = 0;
  std::string degraded_;  // what works less well than asked for, and why
  std::string ended_;     // why recording can't go on; empty: it can
  Metadata own_metadata_;
  std::uint64_t metadata_version_ = 0;
};

}  // namespace dial9::internal
