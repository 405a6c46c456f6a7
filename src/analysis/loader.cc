// Dispatch: a schema gets its plan at first sight (handler, positions of its fields), an event
// costs one indirect call. Strings of a stream's pool are interned once a stream.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/loader.h"

#include <algorithm>

#include "analysis/fields.h"
#include "analysis/json_text.h"
#include "analysis/loader_impl.h"

namespace dial9::analysis {
namespace {

constexpr std::uint64_t kTextPerCharge = 256;  // bytes of text that count as one event's memory
// Of what one value's pool references stand for: hundreds of addresses.
constexpr std::size_t kMaxCellBytes = 16 * 1024;
constexpr std::size_t kStackEntryBytes = 48;  // of a hash table, with its node

Error memory_limit_error() {
  return {ErrorCode::kLimit, "the memory limit was reached: the rest is not loaded"};
}

}  // namespace

struct Loader::Impl::Known {
  std::string_view name;
  Plan::Handler handler;
  std::initializer_list<std::string_view> fields;
};

std::span<const Loader::Impl::Known> Loader::Impl::known_types() {
  static const Known kKnown[] = {
      {"PollStartEvent", &I::on_poll_start, {"worker_id", "local_queue", "task_id", "spawn_loc"}},
      {"PollEndEvent", &I::on_poll_end, {"worker_id"}},
      {"WorkerParkEvent", &I::on_park, {"worker_id", "cpu_time_ns", "tid"}},
      {"WorkerUnparkEvent", &I::on_unpark, {"worker_id", "cpu_time_ns", "sched_wait_ns", "tid"}},
      {"TaskSpawnEvent", &I::on_task_spawn, {"task_id", "spawn_loc", "instrumented"}},
      {"TaskTerminateEvent", &I::on_task_terminate, {"task_id"}},
      {"WakeEventEvent", &I::on_wake, {"waker_task_id", "woken_task_id"}},
      {"RuntimeMetricsEvent",
       &I::on_runtime_metrics,
       {"runtime_name", "global_queue_depth", "alive_tasks"}},
      {"QueueSampleEvent", &I::on_queue_sample, {"global_queue"}},
      {"WorkerSchedEvent",
       &I::on_worker_sched,
       {"worker_id", "tid", "run_ns", "wait_ns", "slices"}},
      {"BlockingCallEvent",
       &I::on_blocking_call,
       {"tid", "task_id", "call", "duration_ns", "callchain"}},
      {"LockWaitEvent",
       &I::on_lock_wait,
       {"tid", "task_id", "lock", "owner_tid", "duration_ns", "callchain", "truncated", "kind"}},
      {"ProcessResourceUsageEvent",
       &I::on_resource_usage,
       {"user_cpu_ns", "system_cpu_ns", "rss_bytes", "max_rss_bytes", "major_faults",
        "involuntary_context_switches"}},
      {"PlatformStallEvent",
       &I::on_platform_stall,
       {"cause", "scope", "begin_ns", "stalled_ns", "full_stalled_ns", "step_ns", "count"}},
      {"TcpAcceptQueueEvent",
       &I::on_accept_queue,
       {"socket_cookie", "socket_inode", "local_addr", "local_port", "pending_connections",
        "backlog_limit", "dropped_connections", "ip_version"}},
      {"ClockSyncEvent", &I::on_clock_sync, {"realtime_ns"}},
      {"SegmentMetadataEvent", &I::on_metadata, {"entries"}},
      {"RecorderLossEvent", &I::on_loss, {"cause", "count", "first_ns", "last_ns"}},
      {"RecorderShedEvent", &I::on_shed, {"class", "keep_one_in", "since_ns", "kept", "shed"}},
      {"CpuSampleEvent",
       &I::on_cpu_sample,
       {"tid", "source", "thread_name", "callchain", "weight", "task_id", "span_id", "label_name",
        "label_value", "truncated", "has_context", "unwound_by"}},
      {"LabelChangeEvent",
       &I::on_label_change,
       {"tid", "task_id", "known", "label_name", "label_value"}},
      {"LabelCoverageEvent",
       &I::on_label_coverage,
       {"since_ns", "until_ns", "lists_tasks", "lists_threads", "listed_ns"}},
      {"ModuleEvent",
       &I::on_module,
       {"path", "build_id", "begin", "end", "bias", "epoch", "since_ns", "before_held_ns",
        "only_added"}},
      {"SymbolTableEntry",
       &I::on_symbol,
       {"addr", "size", "symbol_name", "inline_depth", "source_file", "source_line"}},
      {"AllocEvent",
       &I::on_alloc,
       {"tid", "size", "addr", "callchain", "task_id", "span_id", "label_name", "label_value",
        "truncated", "sample_rate_bytes", "tracked", "unwound_by"}},
      {"FreeEvent", &I::on_free, {"addr", "alloc_timestamp_ns"}},
      {"HeapProfileEvent",
       &I::on_heap_profile,
       {"elapsed_ns", "lost_samples", "lost_frees", "untracked", "live_samples", "tracks_live",
        "sample_rate_bytes", "largest_rate_bytes"}},
      {"MemoryProfileOverflowEvent", &I::on_heap_overflow, {"dropped_allocs", "dropped_frees"}},
      {"TaskDumpEvent", &I::on_task_dump, {"task_id", "callchain"}},
  };
  return kKnown;
}

std::span<const Loader::Impl::Known> Loader::Impl::known_off_cpu_types() {
  static const Known kKnown[] = {
      {"OffCpuEvent",
       &I::on_off_cpu,
       {"tid",         "duration_ns", "reason",      "callchain", "parked",    "task_id",
        "call",        "fd",          "peer",        "share_ns",  "continued", "thread_name",
        "span_id",     "label_name",  "label_value", "cause",     "truncated", "exact",
        "runnable_ns", "unwound_by",  "guessed"}},
      {"SocketWaitEvent",
       &I::on_socket_wait,
       {"tid", "thread_name", "task_id", "span_id", "call", "fd", "peer", "waited_ns", "tcp_state",
        "rtt_ns", "rtt_var_ns", "retransmits", "total_retransmits", "unacked_segments",
        "lost_segments", "since_received_ns", "since_sent_ns", "unread_bytes", "unsent_bytes"}},
      {"ThreadTimesEvent",
       &I::on_thread_times,
       {"tid", "thread_name", "elapsed_ns", "running_ns", "runnable_ns", "blocked_ns", "seen_ns",
        "share_ns", "exact"}},
  };
  return kKnown;
}

const Loader::Impl::Known* Loader::Impl::find_known(std::string_view name) {
  for (const std::span<const Known> types : {known_types(), known_off_cpu_types()}) {
    const auto found = std::ranges::find(types, name, &Known::name);
    if (found != types.end()) {
      return &*found;
    }
  }
  return nullptr;
}

void Loader::Impl::begin_input(std::string_view name) {
  format::DecodeLimits limits;
  limits.held_bytes = std::clamp<std::uint64_t>(options_.max_memory_bytes / 2, limits.frame_bytes,
                                                limits.held_bytes);
  decoder_ = std::make_unique<format::Decoder>(*this, limits);
  gunzip_ = std::make_unique<format::Gunzip>(
      [this](std::span<const std::uint8_t> bytes) { return decoder_->feed(bytes); });
  plans_.clear();
  run_ = kNoName;
  input_end_ns_ = 0;
  trace_.inputs.push_back(InputFile{std::string(name), 0, 0, std::nullopt, false});
}

Result<void> Loader::Impl::feed(std::span<const std::uint8_t> bytes) {
  InputFile& input = trace_.inputs.back();
  if (trace_.hit_memory_limit) {
    if (!input.error) {
      input.error = memory_limit_error();
    }
    return std::unexpected<Error>(memory_limit_error());
  }
  input.bytes += bytes.size();
  Result<void> fed = gunzip_->feed(bytes);
  input.events = decoder_->stats().events;
  if (!fed) {
    if (trace_.hit_memory_limit) {
      fed = std::unexpected<Error>(memory_limit_error());
    }
    input.error = fed.error();
  }
  return fed;
}

Result<void> Loader::Impl::end_input() {
  InputFile& input = trace_.inputs.back();
  if (!input.error) {
    Result<void> ended = gunzip_->finish();
    Result<void> finished = decoder_->finish();
    if (!ended || !finished) {
      input.error = ended ? finished.error() : ended.error();
    }
  }
  input.events = decoder_->stats().events;
  gunzip_.reset();
  decoder_.reset();
  last_worker_ = nullptr;
  if (input.error) {
    if (run_ != kNoName) {
      damaged_at_ns_[run_] = input_end_ns_;
    }
    return std::unexpected<Error>(*input.error);
  }
  return {};
}

void Loader::Impl::on_stream_start(std::uint64_t /*offset*/) {
  ++stream_;
  sparse_pool_.clear();
  undefined_.clear();
  stack_pool_.clear();
}

void Loader::Impl::on_string(std::uint32_t id, std::string_view text) {
  charge(1 + text.size() / kTextPerCharge);
  if (trace_.hit_memory_limit) {
    return;  // the next event ends the load
  }
  const NameId name = trace_.names.intern(text);
  if (id < kDensePool) {
    if (id >= pool_.size()) {
      pool_.resize(std::min<std::size_t>(kDensePool, std::max<std::size_t>(256, id * 2 + 1)));
    }
    pool_[id] = {stream_, name};
  } else {
    sparse_pool_[id] = name;
  }
  if (const auto late = undefined_.find(id); late != undefined_.end()) {
    trace_.names.define(late->second, text);
    aliases_[late->second] = name;
    undefined_.erase(late);
  }
}

NameId Loader::Impl::pooled(std::uint32_t id) {
  if (id < pool_.size() && pool_[id].stream == stream_) {
    return pool_[id].name;
  }
  if (const auto found = sparse_pool_.find(id); found != sparse_pool_.end()) {
    return found->second;
  }
  const auto [entry, is_new] = undefined_.try_emplace(id, kNoName);
  if (is_new) {
    entry->second = trace_.names.add_undefined();
  }
  return entry->second;
}

NameId Loader::Impl::settled(NameId name) const {
  if (aliases_.empty()) {
    return name;
  }
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? name : found->second;
}

void Loader::Impl::on_schema(const format::Schema& schema) {
  if (schema.index >= plans_.size()) {
    plans_.resize(schema.index + 1);
  }
  plans_[schema.index].is_stale = true;
  if (schema.name.starts_with("SpanClose")) {
    has_span_closes_ = true;  // its writer closes spans, also if it hasn't yet
  }
}

void Loader::Impl::make_plan(const format::Schema& schema) {
  Plan plan;
  plan.is_stale = false;
  const NameId name = trace_.names.intern(schema.name);
  const auto [type, is_new] =
      type_index_.try_emplace(name, static_cast<std::uint32_t>(trace_.by_type.size()));
  if (is_new) {
    trace_.by_type.push_back({name, 0});
  }
  plan.type = type->second;
  if (const Known* known = find_known(schema.name); known != nullptr) {
    // Allocations are also rows of their own on the page, each with its stack.
    if (known->handler == &Impl::on_alloc) plan_custom(plan, schema);
    plan.handler = known->handler;
    resolve(plan, schema, {known->fields.begin(), known->fields.size()});
  } else if (!plan_span(plan, schema) && !plan_whole_span(plan, schema)) {
    plan_custom(plan, schema);
  }
  plans_[schema.index] = std::move(plan);
}

bool Loader::Impl::on_event(const format::Event& event) {
  if (plans_[event.schema.index].is_stale) {
    make_plan(event.schema);
  }
  const Plan& plan = plans_[event.schema.index];
  ++trace_.events;
  ++trace_.by_type[plan.type].count;
  touch(event.timestamp_ns);
  if (plan.handler != nullptr) {
    (this->*plan.handler)(event, plan);
    if (plan.table != kNoIndex && plan.handler != &Impl::on_custom) {
      on_custom(event, plan);
    }
  }
  charge(1);
  return !trace_.hit_memory_limit;
}

void Loader::Impl::charge(std::uint64_t work) {
  constexpr std::uint64_t kCheckEvery = 1 << 14;
  since_memory_check_ += work;
  if (since_memory_check_ >= kCheckEvery) {
    since_memory_check_ = 0;
    trace_.hit_memory_limit = trace_.hit_memory_limit || bytes() > options_.max_memory_bytes;
  }
}

// Stamp 0 is "no time" (symbol tables).
void Loader::Impl::touch(std::uint64_t at_ns) {
  if (at_ns != 0) {
    trace_.begin_ns = std::min(trace_.begin_ns == 0 ? at_ns : trace_.begin_ns, at_ns);
    trace_.end_ns = std::max(trace_.end_ns, at_ns);
    input_end_ns_ = std::max(input_end_ns_, at_ns);
  }
}

void Loader::Impl::resolve(Plan& plan, const format::Schema& schema,
                           std::span<const std::string_view> names) {
  plan.field.fill(kNoField);
  std::size_t i = 0;
  for (const std::string_view name : names) {
    plan.field[i++] = static_cast<std::int16_t>(schema.find(name));
  }
}

std::uint64_t Loader::Impl::number(const format::Event& event, std::int16_t field,
                                   std::uint64_t missing) {
  if (field < 0) {
    return missing;
  }
  return number_of(event.values[static_cast<std::size_t>(field)], missing);
}

std::uint64_t Loader::Impl::identity(const format::Event& event, std::int16_t field,
                                     std::uint64_t missing) {
  return field < 0 ? missing : identity_of(event.values[static_cast<std::size_t>(field)], missing);
}

std::uint32_t Loader::Impl::number32(const format::Event& event, std::int16_t field,
                                     std::uint32_t missing) {
  const std::uint64_t wide = number(event, field, missing);
  return wide > ~std::uint32_t{0} ? missing : static_cast<std::uint32_t>(wide);
}

NameId Loader::Impl::text(const format::Event& event, std::int16_t field) {
  if (field < 0) {
    return kNoName;
  }
  const format::Value& value = event.values[static_cast<std::size_t>(field)];
  if (!value.is_present) {
    return kNoName;
  }
  if (value.type == format::FieldType::kPooledString) {
    return pooled(static_cast<std::uint32_t>(value.bits));
  }
  return value.type == format::FieldType::kString ? trace_.names.intern(value.text()) : kNoName;
}

Cell Loader::Impl::cell(const format::Value& value) {
  using format::FieldType;
  if (!value.is_present) {
    return {};
  }
  switch (value.type) {
    case FieldType::kI64:
      return {CellType::kI64, value.bits};
    case FieldType::kF64:
      return {CellType::kF64, value.bits};
    case FieldType::kBool:
      return {CellType::kBool, value.bits};
    case FieldType::kVarint:
    case FieldType::kU8:
    case FieldType::kU16:
    case FieldType::kU32:
      return {CellType::kU64, value.bits};
    case FieldType::kString:
      charge(value.bytes.size() / kTextPerCharge);
      return {CellType::kText, trace_.names.intern(value.text())};
    case FieldType::kPooledString:
      return {CellType::kText, pooled(static_cast<std::uint32_t>(value.bits))};
    case FieldType::kStackFrames:
    case FieldType::kPooledStackFrames:
      return {CellType::kStack, stack(value)};
    default:
      break;
  }
  std::string json;
  append_json_value(json, value, *decoder_, kMaxCellBytes);
  charge(json.size() / kTextPerCharge);
  return {CellType::kText, trace_.names.intern(json)};
}

std::uint32_t Loader::Impl::task_index(std::uint64_t id, std::uint64_t at_ns) {
  if (id == 0) {
    return kNoIndex;
  }
  Tasks& tasks = trace_.tasks;
  const auto [entry, is_new] =
      trace_.task_by_id.try_emplace(id, static_cast<std::uint32_t>(tasks.size()));
  const std::uint32_t index = entry->second;
  if (is_new) {
    tasks.id.push_back(id);
    tasks.spawn_ns.push_back(kUnknownNs);
    tasks.terminate_ns.push_back(kUnknownNs);
    tasks.busy_ns.push_back(0);
    tasks.first_ns.push_back(at_ns);
    tasks.last_ns.push_back(at_ns);
    tasks.spawn_loc.push_back(kNoName);
    tasks.migrations.push_back(0);
    tasks.flags.push_back(0);
  }
  tasks.first_ns[index] = std::min(tasks.first_ns[index], at_ns);
  tasks.last_ns[index] = std::max(tasks.last_ns[index], at_ns);
  return index;
}

std::uint64_t Loader::Impl::bytes() const {
  std::size_t bytes =
      trace_.bytes() + wakes_.bytes() + spans_.bytes() + span_cells_.bytes() +
      blocks_.capacity() * (sizeof(Block) + sizeof(std::uint64_t)) + samples_.bytes() +
      dumps_.bytes() + frees_.bytes() + label_changes_.capacity() * sizeof(LabelChange) +
      label_coverage_.capacity() * sizeof(LabelCoverage) + stack_by_hash_.size() * kStackEntryBytes;
  for (const auto& [id, raw] : workers_) {
    bytes += raw.polls.bytes() + raw.parks.bytes();
  }
  return bytes;
}

Trace Loader::Impl::finish() {
  add_gaps();
  build_lanes();
  build_tasks();
  build_spans();
  build_rest();
  build_profile();
  build_heap();
  return std::move(trace_);
}

Loader::Loader(LoadOptions options) : impl_(std::make_unique<Impl>(options)) {}
Loader::~Loader() = default;
void Loader::begin_input(std::string_view name) { impl_->begin_input(name); }
Result<void> Loader::feed(std::span<const std::uint8_t> bytes) { return impl_->feed(bytes); }
Result<void> Loader::end_input() { return impl_->end_input(); }
std::uint64_t Loader::bytes() const { return impl_->bytes(); }
std::uint64_t Loader::events() const { return impl_->events(); }
Trace Loader::finish() { return impl_->finish(); }

Trace load(std::span<const std::span<const std::uint8_t>> files, LoadOptions options) {
  Loader loader(options);
  for (const std::span<const std::uint8_t> file : files) {
    loader.begin_input("memory");
    // An error is kept in Trace::inputs.
    (void)loader.feed(file);
    (void)loader.end_input();
  }
  return loader.finish();
}

Trace load(std::span<const std::uint8_t> file, LoadOptions options) {
  return load(std::span(&file, 1), options);
}

}  // namespace dial9::analysis
