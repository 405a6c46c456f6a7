// The loader's inside: which record goes where. Decoding hands every event to the handler that its
// schema was given at first sight; handlers append to raw columns; finish() (build_*.cc) sorts,
// pairs and joins them into the Trace. Internal to analysis/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/loader.h"
#include "analysis/moment_labels.h"
#include "analysis/segment_gaps.h"
#include "analysis/trace.h"
#include "format/decoder.h"
#include "format/gunzip.h"

namespace dial9::analysis {

enum class RawPollKind : std::uint8_t { kStart, kEnd };

struct RawPoll {
  std::uint64_t at_ns;
  std::uint32_t task;
  NameId spawn_loc;
  std::uint32_t stream;
  RawPollKind kind;
  std::uint8_t local_queue;
};

struct RawPark {
  std::uint64_t at_ns;
  std::uint64_t cpu_ns;
  std::uint64_t kernel_wait_ns;  // of an unpark
  std::uint32_t tid;
  std::uint32_t stream;
  bool is_park;
};

// What one worker id recorded, in input order.
struct RawWorker {
  Column<RawPoll> polls;
  Column<RawPark> parks;
  std::uint64_t last_ns = 0;
  std::uint32_t last_stream = 0;
  bool has_poll_disorder = false;  // within or across streams: sort before pairing
  bool has_park_disorder = false;
};

struct RawWake {
  std::uint64_t at_ns;
  std::uint32_t task;
  std::uint32_t waker;
};

// kEnter and kExit: one pair a span (ours) or a poll (older); kClose; kWhole: a span in one event.
enum class RawSpanKind : std::uint8_t { kEnter, kFinalExit, kExit, kClose, kWhole };

struct RawSpan {
  std::uint64_t at_ns = 0;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::uint64_t active_ns = kUnknownNs;
  std::uint64_t idle_ns = kUnknownNs;
  std::uint64_t start_ns = kUnknownNs;  // where the record says it
  std::uint64_t task_id = 0;
  Range fields;
  NameId name = kNoName;
  std::uint32_t worker = kUnknownWorker;
  std::uint32_t poll_count = 0;
  RawSpanKind kind = RawSpanKind::kEnter;
  bool is_completed = true;
  bool has_parent = false;
};

struct RawFree {
  std::uint64_t at_ns = 0;
  std::uint64_t address = 0;
  std::uint64_t alloc_ns = kUnknownNs;  // not told
};

class Loader::Impl final : public format::Visitor {
 public:
  explicit Impl(LoadOptions options) : options_(options) {}

  void begin_input(std::string_view name);
  Result<void> feed(std::span<const std::uint8_t> bytes);
  Result<void> end_input();
  std::uint64_t events() const { return trace_.events; }
  std::uint64_t bytes() const;
  Trace finish();

  // format::Visitor
  void on_stream_start(std::uint64_t offset) override;
  void on_schema(const format::Schema& schema) override;
  bool on_event(const format::Event& event) override;
  void on_string(std::uint32_t id, std::string_view text) override;
  void on_stack(std::uint32_t id, std::span<const std::uint64_t> leaf_first) override;

 private:
  static constexpr std::size_t kMaxFields = 21;
  static constexpr std::int16_t kNoField = -1;

  // What a schema turned out to be.
  struct Plan {
    using Handler = void (Impl::*)(const format::Event&, const Plan&);
    Handler handler = nullptr;                     // nullptr: counted only
    std::array<std::int16_t, kMaxFields> field{};  // positions of the names that the handler wants
    std::uint32_t type = 0;                        // index in trace_.by_type
    std::uint32_t table = kNoIndex;                // in trace_.custom
    NameId name = kNoName;                         // of spans without a name field
    std::uint64_t unit_ns = 1;                     // of a span's duration
    bool is_stale = true;  // to be made (again) by the next event: annotations may come in droves
    std::vector<std::pair<std::uint16_t, NameId>> user_fields;  // position, name
  };
  // A known event type: its name, handler and the fields that the handler reads.
  struct Known;
  using I = Impl;  // for the table of them
  static std::span<const Known> known_types();
  static std::span<const Known> known_off_cpu_types();
  static const Known* find_known(std::string_view name);

  // --- reading fields (loader.cc)
  static std::uint64_t number(const format::Event& event, std::int16_t field,
                              std::uint64_t missing);
  static std::uint64_t identity(const format::Event& event, std::int16_t field,
                                std::uint64_t missing);
  static std::uint32_t number32(const format::Event& event, std::int16_t field,
                                std::uint32_t missing);
  NameId text(const format::Event& event, std::int16_t field);
  NameId readable(NameId function);
  NameId pooled(std::uint32_t id);
  Cell cell(const format::Value& value);
  void resolve(Plan& plan, const format::Schema& schema, std::span<const std::string_view> names);
  void make_plan(const format::Schema& schema);
  void touch(std::uint64_t at_ns);
  std::uint32_t task_index(std::uint64_t id, std::uint64_t at_ns);
  RawWorker& worker(std::uint64_t id, std::uint64_t at_ns);
  // Counts work towards the next look at the memory; text that is kept counts by its length.
  void charge(std::uint64_t work);

  // --- handlers (load_runtime.cc)
  void on_poll_start(const format::Event& event, const Plan& plan);
  void on_poll_end(const format::Event& event, const Plan& plan);
  void on_park(const format::Event& event, const Plan& plan);
  void on_unpark(const format::Event& event, const Plan& plan);
  void on_task_spawn(const format::Event& event, const Plan& plan);
  void on_task_terminate(const format::Event& event, const Plan& plan);
  void on_wake(const format::Event& event, const Plan& plan);
  void on_runtime_metrics(const format::Event& event, const Plan& plan);
  void on_queue_sample(const format::Event& event, const Plan& plan);
  void on_worker_sched(const format::Event& event, const Plan& plan);
  void add_poll(std::uint64_t worker_id, const RawPoll& poll);
  void add_park(std::uint64_t worker_id, const RawPark& park);
  Series& series(NameId runtime, Series::Kind kind);
  void add_sample(NameId runtime, Series::Kind kind, std::uint64_t at_ns, double value);

  // --- handlers (load_process.cc)
  void on_blocking_call(const format::Event& event, const Plan& plan);
  void on_lock_wait(const format::Event& event, const Plan& plan);
  void on_resource_usage(const format::Event& event, const Plan& plan);
  void on_clock_sync(const format::Event& event, const Plan& plan);
  void on_metadata(const format::Event& event, const Plan& plan);
  void on_loss(const format::Event& event, const Plan& plan);
  void on_shed(const format::Event& event, const Plan& plan);

  // --- handlers (load_platform.cc)
  void on_accept_queue(const format::Event& event, const Plan& plan);
  void on_platform_stall(const format::Event& event, const Plan& plan);
  void build_platform();
  AcceptQueue* accept_queue(std::uint64_t cookie, std::uint64_t inode, const std::string& address);

  // --- handlers (load_off_cpu.cc)
  void on_off_cpu(const format::Event& event, const Plan& plan);
  void on_thread_times(const format::Event& event, const Plan& plan);
  void on_socket_wait(const format::Event& event, const Plan& plan);
  NameId wait_name(const format::Event& event, std::int16_t call, std::int16_t fd,
                   std::int16_t peer);

  // --- handlers (load_profile.cc)
  void on_cpu_sample(const format::Event& event, const Plan& plan);
  void on_symbol(const format::Event& event, const Plan& plan);
  void on_module(const format::Event& event, const Plan& plan);
  void on_task_dump(const format::Event& event, const Plan& plan);
  void on_label_change(const format::Event& event, const Plan& plan);
  void on_label_coverage(const format::Event& event, const Plan& plan);
  // The number of a stack in trace_.stacks; kNoIndex: absent, empty or never defined.
  std::uint32_t stack(const format::Value& value);
  std::uint32_t stack(const format::Event& event, std::int16_t field);
  std::uint32_t intern_stack(std::span<const std::uint64_t> frames);

  // --- handlers (load_heap.cc)
  void on_alloc(const format::Event& event, const Plan& plan);
  void on_free(const format::Event& event, const Plan& plan);
  void on_heap_profile(const format::Event& event, const Plan& plan);
  void on_heap_overflow(const format::Event& event, const Plan& plan);

  // --- spans (load_spans.cc)
  bool plan_span(Plan& plan, const format::Schema& schema);
  bool plan_whole_span(Plan& plan, const format::Schema& schema);
  void on_span_enter(const format::Event& event, const Plan& plan);
  void on_span_exit(const format::Event& event, const Plan& plan);
  void on_span_close(const format::Event& event, const Plan& plan);
  void on_whole_span(const format::Event& event, const Plan& plan);
  Range span_fields(const format::Event& event, const Plan& plan);
  void add_map_fields(const format::Value& value);

  // --- everything else (load_custom.cc)
  void plan_custom(Plan& plan, const format::Schema& schema);
  void on_custom(const format::Event& event, const Plan& plan);

  // --- finish
  NameId settled(NameId name) const;  // an undefined string that got its text later
  void build_lanes();                 // build_lanes.cc
  void build_shed();                  // build_tasks.cc
  void build_tasks();                 // build_tasks.cc
  void build_spans();                 // build_spans.cc
  void build_rest();                  // build_rest.cc
  void add_gaps();                    // load_process.cc
  void close_damage(std::uint64_t at_ns);
  void build_profile();
  void place_samples();  // build_profile.cc
  void build_heap();     // load_heap.cc
  void match_frees();
  void locate_blocks();
  void name_lanes();

  LoadOptions options_;
  Trace trace_;

  // The current input.
  std::unique_ptr<format::Decoder> decoder_;
  std::unique_ptr<format::Gunzip> gunzip_;
  std::vector<Plan> plans_;  // by Schema::index
  std::uint64_t since_memory_check_ = 0;

  // The current stream's string pool.
  struct PoolSlot {
    std::uint32_t stream = 0;
    NameId name = kNoName;
  };
  static constexpr std::uint32_t kDensePool = 1 << 16;
  std::uint32_t stream_ = 0;  // over all inputs, from 1
  std::vector<PoolSlot> pool_;
  std::unordered_map<std::uint32_t, NameId> sparse_pool_;
  std::unordered_map<std::uint32_t, NameId> undefined_;  // used before they were defined
  std::unordered_map<NameId, NameId> aliases_;
  std::unordered_map<NameId, NameId> readable_;       // of mangled names
  std::size_t unfold_left_ = std::size_t{256} << 20;  // bytes, by estimate, of those to come

  std::unordered_map<NameId, std::uint32_t> type_index_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> tables_by_hash_;  // in custom
  std::unordered_map<std::uint64_t, std::uint32_t> series_of_;        // by runtime and kind
  std::unordered_map<std::uint64_t, std::uint32_t> accept_queue_of_;  // by cookie
  std::unordered_map<NameId, std::uint64_t> listener_at_;  // address: cookie of its first
  std::map<std::uint64_t, RawWorker> workers_;
  std::uint64_t last_worker_id_ = ~std::uint64_t{0};
  RawWorker* last_worker_ = nullptr;
  Column<RawWake> wakes_;
  Column<RawSpan> spans_;
  Column<NamedCell> span_cells_;
  bool has_span_closes_ = false;
  SegmentGaps gaps_;
  std::vector<Block> blocks_;
  std::vector<std::uint64_t> block_task_ids_;
  NameId run_ = kNoName;            // the boot id of what is read
  std::uint64_t input_end_ns_ = 0;  // the last stamp of the current input
  // Of each run: the last stamp of an input that couldn't be read to its end, until the next
  // begins.
  std::unordered_map<NameId, std::uint64_t> damaged_at_ns_;
  Column<CpuSample> samples_;
  Column<TaskDump> dumps_;
  std::vector<LabelChange> label_changes_;
  std::vector<LabelCoverage> label_coverage_;
  Column<RawFree> frees_;
  bool says_tracked_ = false;  // samples say whether their free would be seen
  std::unordered_map<std::uint32_t, std::uint32_t> stack_pool_;  // of the current stream
  std::unordered_multimap<std::uint64_t, std::uint32_t> stack_by_hash_;
};

}  // namespace dial9::analysis
