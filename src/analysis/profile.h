// What profilers leave in a trace: call stacks, samples of running threads, waits of others, dumps
// of suspended tasks, and the symbols that name addresses. Strongest property: an address that no
// symbol covers stays an address. Spec: docs/spec/events.md, "Profiling".
//
// Memory: 8 bytes a distinct stack's frame, 64 a sample, 80 a wait, 72 a record of a thread's
// times, 16 a dump, 40 a symbol; counted in Trace::bytes().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/column.h"
#include "analysis/names.h"
#include "analysis/unwound_by.h"

namespace dial9::analysis {

// Rows [first, last) of a column.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t size() const { return last - first; }
  bool empty() const { return first == last; }
};

// Distinct stacks; a stack's position is its number.
struct Stacks {
  Column<std::uint64_t> frames;
  Column<Range> ranges;  // of frames, leaf first
  Column<NameId> runs;   // whose addresses they are: a boot id; kNoName: not recorded
  std::size_t size() const { return ranges.size(); }
  std::size_t bytes() const { return frames.bytes() + ranges.bytes() + runs.bytes(); }
};

// One function at an address; several of one address are what was inlined there.
struct Symbol {
  std::uint64_t addr = 0;
  std::uint64_t size = 0;  // 0: the address alone
  NameId name = kNoName;
  NameId file = kNoName;
  std::uint32_t line = 0;          // 0: not known
  std::uint32_t inline_depth = 0;  // 0: outermost
  NameId run = kNoName;            // whose address it is: a boot id; kNoName: not recorded
};

// Sorted by (run, address, depth), each once.
class Symbols {
 public:
  void add(const Symbol& symbol) { rows_.push_back(symbol); }
  void sort();
  // The symbols of an address of a run from the innermost to the outermost; empty: none covers it.
  // Of the `most` innermost ones. Those that tell no run serve for all.
  std::vector<Symbol> at(NameId run, std::uint64_t address, std::size_t most) const;
  std::size_t size() const { return rows_.size(); }
  std::size_t bytes() const { return rows_.capacity() * sizeof(Symbol); }
  std::vector<Symbol>& rows() { return rows_; }

 private:
  std::vector<Symbol> in_run(NameId run, std::uint64_t address, std::size_t most) const;

  std::vector<Symbol> rows_;
};

enum class SampleSource : std::uint8_t { kCpu, kSwitch };  // a CPU clock's tick, a context switch

inline constexpr std::uint64_t kUnknownId = ~std::uint64_t{0};

struct CpuSample {
  std::uint64_t at_ns = 0;
  std::uint64_t task_id = kUnknownId;  // 0: none; kUnknownId: not recorded
  std::uint64_t span_id = kUnknownId;  // the innermost open one; likewise
  std::uint32_t tid = 0;
  std::uint32_t stack = 0;   // kNoIndex: not recorded
  std::uint32_t weight = 1;  // periods that it stands for
  NameId thread_name = kNoName;
  NameId label_name = kNoName;
  NameId label_value = kNoName;
  SampleSource source = SampleSource::kCpu;
  bool is_truncated = false;  // the stack's outer frames are missing
  UnwoundBy unwound = UnwoundBy::kUnknown;
  bool is_label_known = true;    // else it isn't recorded whether it has one
  bool is_owner_joined = false;  // task and span are those of the poll that it lies in
};

// The samples of a worker's lane, or of a thread that isn't a worker.
struct SampleRow {
  std::uint32_t lane = 0;  // kNoIndex: a thread of its own
  std::uint32_t tid = 0;   // of a thread of its own
  NameId thread_name = kNoName;
  Range samples;  // by time
};

// A wait of a thread off the CPU, or a piece of one.
struct OffCpuWait {
  std::uint64_t at_ns = 0;             // its first look
  std::uint64_t proven_ns = 0;         // it went on for so long from there
  std::uint64_t runnable_ns = 0;       // and then it waited for a CPU; 0: or that isn't known
  std::uint64_t share_ns = 0;          // and before or after for so long, by estimate
  std::uint64_t task_id = kUnknownId;  // 0: none; kUnknownId: not known
  std::uint64_t span_id = kUnknownId;  // likewise
  std::uint32_t tid = 0;
  std::uint32_t stack = 0;  // kNoIndex: not recorded
  std::uint32_t lane = 0;   // of the worker that the thread was then; kNoIndex: of none
  NameId thread_name = kNoName;
  NameId label_name = kNoName;
  NameId label_value = kNoName;
  NameId call = kNoName;  // "recv(fd 12, peer 10.0.0.7:6379)"
  NameId cause = kNoName;
  bool is_continued = false;  // the wait of its thread's row before
  bool is_parked = false;     // a worker that waits for work
  bool is_preempted = false;  // it waited for a CPU
  bool is_exact = false;      // from switch to switch
  bool is_truncated = false;  // the stack's outer frames are missing
  UnwoundBy unwound = UnwoundBy::kUnknown;
  bool is_label_known = true;  // as CpuSample has them
  bool is_owner_joined = false;
};

// The TCP connection that a thread waited for, while it did. kUnknownNs: not told.
struct SocketWait {
  std::uint64_t at_ns = 0;
  std::uint64_t waited_ns = 0;         // so far, at least
  std::uint64_t task_id = kUnknownId;  // as OffCpuWait has them
  std::uint64_t span_id = kUnknownId;
  std::uint64_t rtt_ns = 0;
  std::uint64_t rtt_var_ns = 0;
  std::uint64_t since_received_ns = 0;  // data; not told: the peer never sent any
  std::uint64_t since_sent_ns = 0;
  std::uint64_t unread_bytes = 0;
  std::uint64_t unsent_bytes = 0;
  std::uint32_t retransmits = 0;        // time-outs in a row
  std::uint32_t total_retransmits = 0;  // segments, of its life
  std::uint32_t unacked_segments = 0;
  std::uint32_t lost_segments = 0;
  std::uint32_t tcp_state = 0;
  std::uint32_t tid = 0;
  std::uint32_t lane = 0;  // of the worker that the thread was then; kNoIndex: of none
  NameId thread_name = kNoName;
  NameId call = kNoName;  // "recv(fd 12, peer 10.0.0.7:6379)"
};

// How a thread's time up to `at_ns` splits: running, runnable and blocked sum to elapsed.
struct ThreadTime {
  std::uint64_t at_ns = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t runnable_ns = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t seen_ns = 0;   // of blocked: proven in waits
  std::uint64_t share_ns = 0;  // of blocked: in waits by estimate
  std::uint32_t tid = 0;
  std::uint32_t lane = 0;  // of the worker that the thread was then; kNoIndex: of none
  NameId thread_name = kNoName;
  bool is_exact = false;  // by the thread's switches
};

// Where a suspended task waited.
struct TaskDump {
  std::uint64_t at_ns = 0;
  std::uint32_t task = 0;
  std::uint32_t stack = 0;  // kNoIndex: not recorded
};

}  // namespace dial9::analysis
