// A loaded trace as columns: what every question of the engine and every page of the viewer reads.
// Immutable once Loader::finish() has made it, so any number of threads may read it. Strongest
// property: nothing in it is guessed; what the records don't say is kUnknownNs or kNoIndex, with
// the reason beside it. Spec: docs/spec/events.md.
//
// Memory: about 45 bytes a poll, 20 a wake, 40 a park, 60 a task, 70 a span, 9 a cell of a custom
// event; Trace::bytes() has the sum. Times are CLOCK_MONOTONIC ns as recorded, durations are ns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/column.h"
#include "analysis/heap.h"
#include "analysis/modules.h"
#include "analysis/names.h"
#include "analysis/profile.h"
#include "base/result.h"
#include "format/wire.h"

namespace dial9::analysis {

inline constexpr std::uint64_t kUnknownNs = ~std::uint64_t{0};
inline constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};
inline constexpr std::uint32_t kUnknownWorker = 255;   // several threads may share it
inline constexpr std::uint32_t kBlockingWorker = 254;  // threads of blocking pools share it
inline constexpr std::uint8_t kUnknownDepth = 255;     // of a local queue: also "255 or more"

// How a poll's ready time is known, or why not.
enum class ReadySource : std::uint8_t {
  kWake,        // known: the first wake since the previous poll began
  kWakeInPoll,  // known: woken during the previous poll, so ready when that ended
  kSpawn,       // inferred: no wake, but the first poll of a task whose spawn was recorded
  kNoWake,      // missing: no wake was recorded since the previous poll began
  kFirstSeen,   // missing: the first poll of a task that is older than the trace
  kNoTask,      // missing: the poll bears no task id
  kUntracked,   // missing: the task's spawn says that its wakes aren't recorded
  kEventsLost,  // missing: events were dropped between the wake and the poll
};
inline constexpr std::size_t kReadySources = 8;
enum class Coverage : std::uint8_t { kKnown, kInferred, kMissing };
Coverage coverage_of(ReadySource source);
// A short phrase for a reader, for instance "no wake was recorded".
std::string_view describe(ReadySource source);

inline constexpr std::uint8_t kPollOpen = 1;  // still running when the records end; ends there
inline constexpr std::uint8_t kPollEndLost =
    2;  // its end wasn't recorded; ends where the next began

// One row a poll, sorted by (lane, start). The position is the poll's index.
struct Polls {
  Column<std::uint64_t> start_ns;
  Column<std::uint64_t> end_ns;    // >= start
  Column<std::uint64_t> ready_ns;  // kUnknownNs: see ready_source
  Column<std::uint32_t> lane;
  Column<std::uint32_t> task;  // index in tasks; kNoIndex: none
  Column<NameId> spawn_loc;    // kNoName: not recorded
  Column<std::uint32_t> wake;  // index in wakes of the one that ready_ns comes from; kNoIndex: none
  Column<ReadySource> ready_source;
  Column<std::uint8_t> flags;
  Column<std::uint8_t> local_queue;  // at its start; kUnknownDepth

  std::size_t size() const { return start_ns.size(); }
  std::uint64_t duration_ns(std::size_t i) const { return end_ns[i] - start_ns[i]; }
  // True if start and end were both recorded: only then the duration is one to judge.
  bool is_complete(std::size_t i) const { return flags[i] == 0; }
  // start - ready, or kUnknownNs.
  std::uint64_t delay_ns(std::size_t i) const {
    return ready_ns[i] == kUnknownNs ? kUnknownNs : start_ns[i] - ready_ns[i];
  }
};

inline constexpr std::uint8_t kParkOpen = 1;       // not unparked when the records end
inline constexpr std::uint8_t kParkStartLost = 2;  // an unpark without a park: starts where it ends
inline constexpr std::uint8_t kParkEndLost = 4;    // a poll began without an unpark; ends there

// One row a park, sorted by (lane, start): the thread waits in the kernel until the unpark.
struct Parks {
  Column<std::uint64_t> start_ns;
  Column<std::uint64_t> end_ns;
  Column<std::uint64_t> kernel_wait_ns;  // of it, runnable but not running; kUnknownNs: not sampled
  Column<std::uint64_t> cpu_start_ns;    // thread CPU time at park; kUnknownNs
  Column<std::uint64_t> cpu_end_ns;      // and at unpark
  Column<std::uint32_t> lane;
  Column<std::uint32_t> tid;  // 0: not recorded
  Column<std::uint8_t> flags;

  std::size_t size() const { return start_ns.size(); }
};

// A worker, or a part of one whose id several threads share (then its polls are packed so that no
// two of a lane overlap). Slices of a lane are sorted by start and don't overlap.
struct Lane {
  std::uint32_t worker = kUnknownWorker;
  std::uint32_t part = 0;    // of a shared worker id: 0, 1, ...
  NameId runtime = kNoName;  // from the metadata
  std::uint32_t tid = 0;     // the last thread seen; 0: not recorded
  Range polls;               // indexes
  Range parks;
  std::uint64_t busy_ns = 0;  // inside polls
  std::uint64_t parked_ns = 0;
};

inline constexpr std::uint8_t kTaskInstrumented = 1;  // its spawn says so: its wakes are recorded
inline constexpr std::uint8_t kTaskSpawnSeen = 2;

// One row a task, in order of first sight.
struct Tasks {
  Column<std::uint64_t> id;
  Column<std::uint64_t> spawn_ns;      // kUnknownNs: before the trace, or lost
  Column<std::uint64_t> terminate_ns;  // kUnknownNs: none seen
  Column<std::uint64_t> busy_ns;
  Column<std::uint64_t> first_ns;  // of everything that names it
  Column<std::uint64_t> last_ns;
  Column<NameId> spawn_loc;
  Column<Range> polls;               // of task_polls
  Column<Range> wakes;               // of wakes, which is sorted by (woken task, time)
  Column<std::uint32_t> migrations;  // polls on another worker than the one before
  Column<std::uint8_t> flags;

  std::size_t size() const { return id.size(); }
};

// Sorted by (woken task, time).
struct Wakes {
  Column<std::uint64_t> at_ns;
  Column<std::uint32_t> task;   // woken; index in tasks
  Column<std::uint32_t> waker;  // index in tasks; kNoIndex: from outside, or unknown
  std::size_t size() const { return at_ns.size(); }
};

// A typed value of a span's field or a custom event's cell.
enum class CellType : std::uint8_t { kAbsent, kU64, kI64, kF64, kBool, kText, kStack };
struct Cell {
  CellType type = CellType::kAbsent;
  std::uint64_t bits = 0;  // of kText: a NameId; of kStack: a stack
  bool is_number() const {
    return type != CellType::kAbsent && type != CellType::kText && type != CellType::kStack;
  }
  double number() const;  // NaN if it isn't one
};
struct NamedCell {
  NameId name = kNoName;
  Cell cell;
};

inline constexpr std::uint8_t kSpanOpen = 1;       // not finished when the records end; ends there
inline constexpr std::uint8_t kSpanCancelled = 2;  // its exit says: not completed
inline constexpr std::uint8_t kSpanStartLost = 4;  // an exit without an enter
inline constexpr std::uint8_t kSpanEndInferred = 8;  // no close was recorded; ends at its last exit

// One row a span, sorted by start; of all dialects of events.md, single-event spans too.
struct Spans {
  Column<std::uint64_t> start_ns;
  Column<std::uint64_t> end_ns;
  Column<std::uint64_t> active_ns;  // on a worker; kUnknownNs: not recorded
  Column<std::uint64_t> id;         // 0: single-event span without one
  Column<std::uint32_t> parent;     // index; kNoIndex: none, or not in the trace
  Column<NameId> name;
  Column<std::uint32_t> worker;      // at its start; kUnknownWorker
  Column<std::uint32_t> task;        // index, where the record names it or a poll covers its start
  Column<std::uint32_t> poll_count;  // 0: not recorded
  Column<Range> fields;              // of span_fields
  Column<std::uint32_t> row;         // packed: spans of a row don't overlap
  Column<std::uint8_t> flags;
  std::size_t size() const { return start_ns.size(); }
};

// Samples of one gauge, sorted by time.
struct Series {
  NameId name = kNoName;  // for instance "main: queued", "main: tasks alive"
  enum class Kind : std::uint8_t {
    kQueueDepth,
    kAliveTasks,
    kResidentBytes,
    kAcceptQueue
  } kind = Kind::kQueueDepth;
  NameId runtime = kNoName;
  Column<std::uint64_t> at_ns;
  Column<double> value;
};

// What the kernel says of a worker's thread over the 100 ms or so before `at_ns`.
struct SchedSample {
  std::uint64_t at_ns = 0;
  std::uint32_t worker = kUnknownWorker;
  std::uint32_t tid = 0;
  std::uint64_t run_ns = 0;   // on a CPU since the sample before
  std::uint64_t wait_ns = 0;  // runnable, not running
  std::uint64_t slices = 0;   // times it got a CPU
};

enum class BlockKind : std::uint8_t { kCall, kLock, kOffCpu, kPreempted };

// Of what a kLock was: a thread stood for a mutex; a handler waited for its strand, and no thread
// stood. Only as the record says, or proves by a stack.
enum class LockKind : std::uint8_t { kUnknown, kMutex, kStrand };

// A stretch in which a thread was held, sorted by start.
struct Block {
  std::uint64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  BlockKind kind = BlockKind::kCall;
  std::uint32_t tid = 0;
  std::uint32_t task = kNoIndex;
  // That covers its start, where it can be told; none of a lock that may be a strand.
  std::uint32_t poll = kNoIndex;
  NameId call = kNoName;        // kCall
  std::uint64_t lock = 0;       // kLock: the lock's or strand's identity
  std::uint32_t owner_tid = 0;  // kLock; 0: unknown
  std::uint32_t stack = kNoIndex;
  bool is_truncated = false;  // the stack's outer frames are missing
  LockKind lock_kind = LockKind::kUnknown;

  // One that would end after the last nanosecond of the clock ends there.
  std::uint64_t end_ns() const {
    return duration_ns > ~start_ns ? ~std::uint64_t{0} : start_ns + duration_ns;
  }
};

struct ResourceSample {
  std::uint64_t at_ns = 0;
  std::uint64_t user_cpu_ns = 0;
  std::uint64_t system_cpu_ns = 0;
  std::uint64_t rss_bytes = kUnknownNs;
  std::uint64_t max_rss_bytes = kUnknownNs;
  std::uint64_t major_faults = 0;
  std::uint64_t involuntary_context_switches = 0;
};

// Why the platform held the process up; kOther: a cause that this version doesn't know.
enum class StallCause : std::uint8_t {
  kLateWakeup,
  kThrottled,
  kSteal,
  kPressureCpu,
  kPressureMemory,
  kPressureIo,
  kClockStep,
  kSuspend,
  kMajorFaults,
  kOther,
};
// As the records name them.
inline constexpr std::array<std::string_view, 10> kStallCauses = {
    "late_wakeup", "cpu_throttled", "steal",   "pressure_cpu", "pressure_memory",
    "pressure_io", "clock_step",    "suspend", "major_faults", "other"};

// Somewhere between begin_ns and end_ns the platform stalled.
struct PlatformStall {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  StallCause cause = StallCause::kOther;
  NameId scope = kNoName;                      // "process", "cgroup", "machine"
  std::uint64_t stalled_ns = kUnknownNs;       // may be more than the range: summed over CPUs
  std::uint64_t full_stalled_ns = kUnknownNs;  // of pressure: nobody got on
  std::int64_t step_ns = 0;                    // of a clock step
  std::uint64_t count = 0;                     // throttlings, faults; 0: not told
};

// One reading of a listener's accept queue.
struct AcceptSample {
  std::uint64_t at_ns = 0;
  std::uint32_t pending = 0;         // connections that nobody accepted yet
  std::uint32_t backlog = 0;         // its limit: full when pending exceeds it
  std::uint64_t drops = kUnknownNs;  // attempts dropped so far; kUnknownNs: not recorded
};

inline constexpr std::size_t kMostAcceptQueues = 1'024;  // those beyond aren't kept

// A TCP socket that listens, with its readings by time.
struct AcceptQueue {
  std::uint64_t cookie = 0;
  NameId address = kNoName;  // "127.0.0.1:8080"; of a second socket there with its inode
  Column<AcceptSample> samples;
};

struct LossRecord {
  std::uint64_t at_ns = 0;
  NameId cause = kNoName;
  std::uint64_t count = 0;  // 0: not known, but some
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
};

// One RecorderShedEvent: from at_ns on one unit in keep_one_in is kept of the class; between
// since_ns and at_ns so many were kept and left out. See shed.h.
struct ShedRecord {
  std::uint64_t at_ns = 0;
  NameId kind = kNoName;
  double keep_one_in = 1;
  std::uint64_t since_ns = 0;
  std::uint64_t kept = 0;
  std::uint64_t shed = 0;
};

struct Anchor {
  std::uint64_t monotonic_ns = 0;
  std::uint64_t realtime_ns = 0;
};

struct MetadataEntry {
  std::uint64_t at_ns = 0;
  std::string key;
  std::string value;
};

// An event type that no rule of ours explains: kept whole. Several tables may have one name, if
// writers disagreed about its fields.
struct EventTable {
  struct Field {
    NameId name = kNoName;
    NameId unit = kNoName;
    NameId kind = kNoName;
    format::FieldType type = format::FieldType::kVarint;
  };
  NameId name = kNoName;
  bool has_timestamp = true;
  std::vector<Field> fields;
  Column<std::uint64_t> at_ns;  // sorted
  Column<std::uint64_t> bits;   // row × fields.size() + field
  Column<CellType> types;

  std::size_t size() const { return at_ns.size(); }
  Cell cell(std::size_t row, std::size_t field) const {
    const std::size_t at = row * fields.size() + field;
    return {types[at], bits[at]};
  }
};

struct InputFile {
  std::string name;
  std::uint64_t bytes = 0;  // as fed, compressed or not
  std::uint64_t events = 0;
  std::optional<Error> error;  // why it was not read to its end; what came before was kept
  bool tells_loss = false;     // its writer records what it loses: that none is recorded is none
};

// Of an entry of a segment's metadata: a writer that records each loss. Another one's silence
// proves nothing.
inline bool is_writer_that_tells_loss(std::string_view key, std::string_view value) {
  return key == "dial9.writer" && value == "dial9-cpp";
}

struct TypeCount {
  NameId name = kNoName;
  std::uint64_t count = 0;
};

struct Trace {
  Names names;
  Polls polls;
  Parks parks;
  std::vector<Lane> lanes;  // by worker id, then part
  Tasks tasks;
  std::unordered_map<std::uint64_t, std::uint32_t> task_by_id;
  Column<std::uint32_t> task_polls;  // poll indexes, by (task, start); Tasks::polls are its ranges
  Wakes wakes;
  Spans spans;
  Column<NamedCell> span_fields;
  std::uint32_t span_rows = 0;
  std::vector<Series> series;
  Column<SchedSample> sched;  // sorted by time
  Column<Block> blocks;
  Stacks stacks;
  Symbols symbols;
  Modules modules;
  Column<CpuSample> samples;               // by (row, time)
  std::vector<SampleRow> sample_rows;      // lanes first
  Column<TaskDump> dumps;                  // by (task, time)
  Column<HeapSample> heap;                 // by time
  std::vector<HeapWindow> heap_windows;    // by time
  std::uint64_t heap_frees_unmatched = 0;  // of samples that aren't in the trace
  bool tracks_live_heap = false;           // frees of samples are recorded
  Column<OffCpuWait> off_cpu;              // by time
  Column<SocketWait> socket_waits;         // by time
  Column<ThreadTime> thread_times;         // by time
  Column<ResourceSample> resources;
  Column<PlatformStall> platform_stalls;   // by begin_ns
  std::vector<AcceptQueue> accept_queues;  // in order of first sight, at most kMostAcceptQueues
  std::vector<LossRecord> loss;            // by first_ns
  std::vector<ShedRecord> shed;            // by at_ns, each once
  std::vector<Anchor> anchors;             // by monotonic_ns
  std::vector<MetadataEntry> metadata;
  std::vector<EventTable> custom;
  std::vector<InputFile> inputs;
  std::vector<TypeCount> by_type;  // most frequent first

  std::uint64_t events = 0;
  std::uint64_t begin_ns = 0;  // of all records of all kinds that bear a time
  std::uint64_t end_ns = 0;
  std::uint64_t inversions = 0;  // records of one worker that went back in time within a stream
  std::uint64_t unmatched_poll_ends = 0;  // ends whose start lies before the trace or was lost
  bool hit_memory_limit = false;          // LoadOptions::max_memory_bytes: the rest was not loaded

  std::uint64_t duration_ns() const { return end_ns - begin_ns; }
  bool is_truncated() const;  // some input has an error, or the memory limit was hit
  // Those that were counted; more are lost where has_unknown_loss().
  std::uint64_t lost_events() const;
  bool has_unknown_loss() const;
  // All that was lost; nullopt where more may be: of unknown number, in what couldn't be read, or
  // of a writer that doesn't tell.
  std::optional<std::uint64_t> all_lost_events() const;
  // By the nearest anchor; nullopt without one.
  std::optional<std::uint64_t> realtime_ns(std::uint64_t at_ns) const;
  // The last value of a metadata key, or empty.
  std::string_view metadata_value(std::string_view key) const;
  // The lane of the worker (its part 0), or kNoIndex.
  std::uint32_t lane_of_worker(std::uint32_t worker) const;
  // The poll of the lane that covers `at_ns` (start <= at < end), or kNoIndex. O(log n).
  std::uint32_t poll_at(std::uint32_t lane, std::uint64_t at_ns) const;
  std::uint32_t park_at(std::uint32_t lane, std::uint64_t at_ns) const;
  Range dumps_of_task(std::uint32_t task) const;  // of dumps; O(log n)
  std::size_t bytes() const;                      // what this holds in memory, about
};

}  // namespace dial9::analysis
