// The recorder of this process: start it, ask how it is, stop it. Strongest property: whatever
// fails (disk, directory, limits) costs data, never the host: no exception leaves these calls, no
// call blocks beyond its stated deadline, and memory and disk stay inside the options' budgets.
// Spec: docs/spec/recorder.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dial9 {

// What became of a call: good, or a reason in one line that names the cure.
class Status {
 public:
  Status() = default;
  static Status failure(std::string message) {
    Status s;
    s.message_ = message.empty() ? "failed for an unknown reason" : std::move(message);
    return s;
  }
  bool ok() const noexcept { return message_.empty(); }
  explicit operator bool() const noexcept { return ok(); }
  const std::string& message() const noexcept { return message_; }  // empty if ok

 private:
  std::string message_;
};

enum class ClockChoice : std::uint8_t { kAuto, kTsc, kKernel };

// Where and how much. Every size has a unit in its name; 0 where a default is computed.
struct RecorderOptions {
  // Segments go to `{directory}/{boot_id}/`; empty: memory ring (sealed segments stay in memory).
  std::string directory;
  // All bytes that this directory (or the memory ring) may hold, earlier runs included; the oldest
  // sealed segment goes first. At least 256 KiB.
  std::uint64_t budget_bytes = std::uint64_t{1024} << 20;
  // A segment is sealed at this size; 0: min(100 MiB, budget / 4).
  std::uint64_t segment_bytes = 0;
  // And at this age, on the monotonic clock. At least 10 ms.
  std::chrono::nanoseconds rotation_period = std::chrono::seconds(60);
  // What one thread may hold before the collector has drained it; above, bursts only while a
  // quarter of the arena is free.
  std::uint32_t thread_bytes = 64 << 10;
  // All thread buffers together, in chunks of 16 KiB. At least 64 KiB; on a disk at most a quarter
  // of the budget, in which their file counts.
  std::uint64_t arena_bytes = std::uint64_t{16} << 20;
  // What recording may cost; 0: no limit. Above, the recorder records less, by class and in the
  // order of docs/spec/recorder.md, "Budget", within half a second, and says how much less.
  double max_cpu_percent = 0;  // CPU time of host threads and collector, in percent of one CPU
  double max_mb_per_sec = 0;   // of segments, in 1,000,000 bytes
  // In memory: keep the thread buffers in anonymous memory rather than in a memory file, where no
  // `dial9 snapshot` can open them.
  bool uses_anonymous_memory = false;
  ClockChoice clock = ClockChoice::kAuto;
  // Record nothing until enable().
  bool starts_disabled = false;
  // What dead processes (whose lock is free) left in the directory: recover it, and remove it
  // beyond the budget and beyond 256 runs, the oldest first; on the collector's thread. False:
  // leave it alone.
  bool removes_dead_runs = true;
  std::string service_name;  // empty: the program's name
  // Into every segment's metadata, after the recorder's own keys.
  std::vector<std::pair<std::string, std::string>> metadata;
  // What goes wrong and right again, one line each, rarely; on the collector's thread. Empty:
  // stderr.
  std::function<void(const std::string&)> on_message;

  static RecorderOptions disk(std::string directory_) {
    RecorderOptions options;
    options.directory = std::move(directory_);
    return options;
  }
  static RecorderOptions memory(std::uint64_t budget_bytes_) {
    RecorderOptions options;
    options.budget_bytes = budget_bytes_;
    return options;
  }
};

struct LossCount {
  std::string cause;  // as in RecorderLossEvent
  std::uint64_t count = 0;
};

struct ShedCount {
  std::string kind;          // as in RecorderShedEvent: "events", "wakes", ...
  std::uint64_t count = 0;   // left out, in units: a poll or a span is one
  double keep_one_in = 1.0;  // now
};

// A source of the process, as far as this recorder goes.
struct SourceStatus {
  std::string name;
  std::uint64_t events = 0;  // that it recorded since the recorder started
  std::string reason;        // why none, or why fewer than there should be; empty: nothing is amiss
};

// One look at the recorder. Counts are exact as of the collector's last pass (some milliseconds
// while the host records, a quarter of a second while it doesn't); what isn't known is not_known.
struct RecorderStatus {
  static constexpr std::uint64_t not_known = ~std::uint64_t{0};
  bool is_recording = false;
  std::string reason;                // why not; or what is degraded
  std::string directory;             // of this run; empty: memory
  std::string clock;                 // "tsc" or "kernel", and why
  std::uint64_t events_written = 0;  // in segments
  std::uint64_t events_dropped = 0;
  std::vector<LossCount> dropped_by_cause;  // only causes that occurred
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_on_disk =
      0;  // in the budget: all runs known of in the directory, or the ring
  std::uint64_t segments_sealed = 0;
  std::uint64_t segments_evicted = 0;
  double events_per_second = 0;  // over the last second or so
  double bytes_per_second = 0;
  // What the recorder costs, in percent of one CPU, over the last second or so: its own thread
  // (measured), and what the host's threads pay (events: estimated by the cost of one, measured at
  // the start; samples: measured, without what the kernel does for them: that isn't known).
  double collector_cpu_percent = 0;
  double host_cpu_percent = 0;
  std::uint64_t events_shed = 0;         // left out to keep within the budget
  std::vector<ShedCount> shed_by_class;  // only classes that occurred, in the order of shedding
  bool is_over_budget = false;           // nothing is left that may be shed
  std::uint64_t last_event_age_ns = not_known;
  std::uint64_t chunks_in_use = 0;
  std::uint64_t chunks_total = 0;
  // Of earlier processes in this directory that were killed: made into segments by this one.
  std::uint64_t runs_recovered = 0;
  std::uint64_t events_recovered = 0;
  std::uint64_t runs_removed = 0;     // dead ones: more than are kept (docs/spec/recorder.md)
  std::uint64_t source_failures = 0;  // callbacks that threw or took over a tenth of their period
  std::vector<SourceStatus> sources;
};

struct StopResult {
  bool is_complete = true;  // everything recorded before the call is in sealed segments
  std::string unfinished;   // what isn't, if not
  std::uint64_t events_written = 0;
  std::uint64_t events_dropped = 0;
  std::uint64_t events_late = 0;  // of the dropped: by record calls that outlasted the last drain
  std::vector<SourceStatus> sources;

  // The exit report: what was recorded and lost, what isn't complete, and a line for each source
  // that made nothing or less than it should, with the reason. Lines, each with its end.
  std::string report() const;
};

struct SegmentBytes {
  std::uint64_t index = 0;
  std::vector<std::uint8_t> bytes;
};

namespace internal {
class RecorderCore;
}

// The handle. Movable; its destructor stops with a deadline of 1 s. One a process.
class Recorder {
 public:
  Recorder() noexcept;  // inert: every call is a no-op
  ~Recorder();
  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) noexcept;

  // Starts recording. Fails (an inert handle and the reason) if a recorder runs in this process, if
  // the directory is locked by another, can't be made, or an option is out of range. Descriptors
  // that are kept have high numbers; one that is opened to be read once, by the recorder's thread,
  // has the lowest free one for microseconds (docs/adr/0007-descriptor-table.md).
  static std::pair<Recorder, Status> start(const RecorderOptions& options) noexcept;

  // In the child of a fork (a prefork server's worker), on the handle that it inherited: starts a
  // recorder of its own with the same options, in a run directory of its own. Before it the child
  // is silent. Fails as start() does, and in the parent. Once a child.
  Status restart_in_child() noexcept;

  bool is_running() const noexcept;
  // Total: while disabled no event of any kind is recorded, sources included. Idempotent.
  void enable() noexcept;
  void disable() noexcept;
  RecorderStatus status() const noexcept;
  // Adds or changes a metadata entry: written to the current segment and every later one.
  void set_metadata(const std::string& key, const std::string& value) noexcept;
  // Drains and seals now, so that everything recorded so far can be read. False after the deadline.
  bool rotate(std::chrono::nanoseconds deadline = std::chrono::seconds(1)) noexcept;
  // Drains, seals, joins the collector. Returns after the deadline at the latest (+ 0.2 s) and says
  // what was left; the handle is inert then. May wait for the niced collector (recorder.md, Life).
  StopResult stop(std::chrono::nanoseconds deadline = std::chrono::seconds(1)) noexcept;

  // Memory ring: the sealed segments, oldest first (copies), and the same as one trace file.
  std::vector<SegmentBytes> sealed_segments() const noexcept;
  Status dump(const std::string& path) const noexcept;

 private:
  explicit Recorder(std::shared_ptr<internal::RecorderCore> core) noexcept;
  std::shared_ptr<internal::RecorderCore> core_;
};

// What recorder_from_env() made of the environment.
struct EnvRecorder {
  Recorder recorder;  // inert unless DIAL9_ENABLED
  Status status;
  std::vector<std::string>
      messages;  // each names a variable: not understood, unknown, not built in
};

// Starts a recorder as the DIAL9_ variables say (docs/spec/events.md, "Environment"). Messages also
// go to stderr unless DIAL9_QUIET. Link dial9_session.
EnvRecorder recorder_from_env() noexcept;

}  // namespace dial9
