// See recorder_core.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recorder_core.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptor_numbers.h"
#include "base/os_error.h"
#include "base/signal_shield.h"
#include "base/stderr_line.h"
#include "base/whole_file.h"
#include "dial9/internal/span_core.h"
#include "recorder/burst_gate.h"
#include "recorder/disk_store.h"
#include "recorder/fork_child.h"
#include "recorder/guarded_fd.h"
#include "recorder/heartbeat.h"
#include "recorder/last_thread.h"
#include "recorder/memory_store.h"
#include "recorder/own_work.h"
#include "recorder/process_registry.h"
#include "recorder/recording_state.h"
#include "recorder/retired_arenas.h"
#include "recorder/runtime_host.h"
#include "recorder/shedding.h"
#include "recorder/stream_source.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMinBudgetBytes = 256 << 10;
constexpr std::uint64_t kMinSegmentBytes = 64 << 10;
constexpr std::uint64_t kMaxDefaultSegmentBytes = std::uint64_t{100} << 20;
constexpr std::uint64_t kMinArenaBytes = std::uint64_t{kMinChunks} * kChunkBytes;
constexpr int kCollectorNice = 10;
// So long after its start the collector runs at its host's priority: a short program that is about
// to end on a busy machine would wait for it otherwise.
constexpr std::uint64_t kYoungNs = 1'000'000'000;
// Between two pieces of a recovery.
constexpr std::uint64_t kRecoveryPauseNs = 2'000'000;
// How often the buffers' file is looked for.
constexpr std::uint64_t kFileCheckNs = 1'000'000'000;
// How often it is looked whether the host still has a thread.
constexpr std::uint64_t kAloneNs = 200'000'000;
// How long stop() lets threads finish the record call that they are in.
constexpr auto kQuiesce = std::chrono::milliseconds(1);

std::uint64_t realtime_now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t segment_bytes_of(const RecorderOptions& options) {
  const std::uint64_t asked = options.segment_bytes != 0
                                  ? options.segment_bytes
                                  : std::min(kMaxDefaultSegmentBytes, options.budget_bytes / 4);
  return std::max(asked, kMinSegmentBytes);
}

Status check(const RecorderOptions& options) {
  if (options.budget_bytes < kMinBudgetBytes) {
    return Status::failure("budget_bytes is " + std::to_string(options.budget_bytes) +
                           "; it must be at least " + std::to_string(kMinBudgetBytes));
  }
  if (options.segment_bytes != 0 && (options.segment_bytes < kMinSegmentBytes ||
                                     options.segment_bytes > options.budget_bytes / 2)) {
    return Status::failure("segment_bytes is " + std::to_string(options.segment_bytes) +
                           "; it must be from " + std::to_string(kMinSegmentBytes) +
                           " to half of budget_bytes");
  }
  if (options.rotation_period < std::chrono::milliseconds(10)) {
    return Status::failure("rotation_period must be at least 10 ms");
  }
  if (!(options.max_cpu_percent >= 0) || !(options.max_mb_per_sec >= 0)) {
    return Status::failure("max_cpu_percent and max_mb_per_sec must be 0 (no limit) or more");
  }
  if (options.arena_bytes < kMinArenaBytes) {
    return Status::failure("arena_bytes must be at least " + std::to_string(kMinArenaBytes));
  }
  return {};
}

GovernorBudget budget_of(const RecorderOptions& options) {
  constexpr double kCpuNsOfPercent = 1e7;
  constexpr double kBytesOfMb = 1e6;
  return {options.max_cpu_percent * kCpuNsOfPercent, options.max_mb_per_sec * kBytesOfMb};
}

void put_bill(const CostBill& bill, RecorderStatus& status) {
  status.collector_cpu_percent = bill.collector_cpu_percent;
  status.host_cpu_percent = bill.producer_cpu_percent;
  status.events_shed = bill.counts.shed_events();
  status.is_over_budget = bill.is_over_budget;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    if (bill.counts.shed[c] == 0) continue;
    const double keep_one_in = bill.is_shedding ? bill.keep_one_in[c] : 1;
    status.shed_by_class.push_back({shed_class_name(c), bill.counts.shed[c], keep_one_in});
  }
}

// What can be added to any time of the clock.
std::chrono::nanoseconds waitable(std::chrono::nanoseconds deadline) {
  return std::min<std::chrono::nanoseconds>(deadline, std::chrono::hours(365 * 24));
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// Which boot of which machine this is: names of the kernel's functions hold for one.
const std::string& kernel_boot_id() {
  static const auto* const id = [] {
    const Result<std::string> text = read_whole_file("/proc/sys/kernel/random/boot_id", 64);
    return new std::string(text ? text->substr(0, text->find('\n')) : "");
  }();
  return *id;
}

std::size_t available_parallelism() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::thread::hardware_concurrency();
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

}  // namespace

RecorderCore::RecorderCore(const RecorderOptions& options, const CoreSeams& seams)
    : options_(options), seams_(seams), pid_(::getpid()), process_(process_number()) {}

RecorderCore::~RecorderCore() {
  if (arena_ != nullptr) retire_arena(std::move(arena_), has_buffer_file());
}

void RecorderCore::message(const std::string& text) const {
  if (options_.on_message) {
    const WorkScope hosts(false);
    try {
      options_.on_message(text);
      return;
    } catch (...) {  // whatever the host's callback throws: the message isn't lost by it
    }
  }
  print_line(text);
}

std::shared_ptr<RecorderCore> RecorderCore::start(const RecorderOptions& options,
                                                  const CoreSeams& seams, Status* status) {
  *status = check(options);
  if (!*status) return nullptr;
  const SignalShield shield;
  watch_forks();
  notice_fork();
  std::shared_ptr<RecorderCore> core(new RecorderCore(options, seams));
  *status = claim_process(core, options.directory.empty() ? "memory ring" : options.directory);
  if (!*status) return nullptr;
  sweep_retired_arenas();
  try {
    *status = core->prepare();
    if (*status && seams.has_thread) *status = core->start_thread();
  } catch (const std::exception&) {
    *status = Status::failure("out of memory");
  }
  if (!*status) {
    publish_arena(nullptr);
    release_process(core.get());
    if (core->run_) core->remove_run(false);
    return nullptr;
  }
  if (!options.starts_disabled) core->enable();
  return core;
}

// Of the directory what no reader needs.
void RecorderCore::remove_run(bool keeps_buffers) {
  if (!keeps_buffers && has_buffer_file()) ::unlink((run_->path() + "/" + kArenaName).c_str());
  run_->remove_if_empty();
  run_.reset();
}

Status RecorderCore::make_arena() {
  ArenaOptions arena;
  arena.thread_bytes = options_.thread_bytes;
  arena.boot_id = boot_id_;
  arena.is_anonymous = options_.uses_anonymous_memory;
  arena.bytes = options_.arena_bytes;
  if (run_) {
    arena.bytes = std::max(std::min(arena.bytes, options_.budget_bytes / 4), kMinArenaBytes);
    arena.path = run_->path() + "/" + kArenaName;
  }
  auto made = Arena::create(arena);
  if (!made && !arena.path.empty()) {
    // A file system without room or without shared mappings: recording goes on, but what lies in
    // the buffers is lost if the process is killed.
    degrade("thread buffers don't survive a kill: " + made.error().message);
    arena.path.clear();
    made = Arena::create(arena);
  }
  if (!made && !arena.is_anonymous) {
    // No memory file either: a limit on file sizes, or a filter of system calls.
    const std::string why = made.error().message;
    arena.is_anonymous = true;
    made = Arena::create(arena);
    if (made) degrade("thread buffers can't be read from outside (dial9 snapshot): " + why);
  }
  if (!made) return Status::failure(made.error().message);
  arena_ = std::move(*made);
  if (!arena.path.empty() && ::stat(arena.path.c_str(), &buffer_file_) != 0) buffer_file_ = {};
  return {};
}

void RecorderCore::degrade(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    degraded_ += (degraded_.empty() ? "" : "; ") + why;
    ++metadata_version_;
  }
  message(why);
}

bool RecorderCore::has_buffer_file() const {
  struct stat there{};
  return buffer_file_.st_ino != 0 && run_ &&
         ::lstat((run_->path() + "/" + kArenaName).c_str(), &there) == 0 &&
         there.st_ino == buffer_file_.st_ino && there.st_dev == buffer_file_.st_dev;
}

// A file without a name can't get one again, and the threads write into its pages: what they record
// from here on reaches segments as before, but a kill takes what no segment has yet.
void RecorderCore::check_buffer_file() {
  if (buffer_file_.st_ino == 0) return;
  const std::string path = run_->path() + "/" + kArenaName;
  struct stat there{};
  const bool is_seen = ::lstat(path.c_str(), &there) == 0;
  const int error = errno;
  const bool is_ours =
      is_seen && there.st_ino == buffer_file_.st_ino && there.st_dev == buffer_file_.st_dev;
  const bool is_cut = is_ours && there.st_size < buffer_file_.st_size;
  if (arena_->has_left_file() || is_cut) {
    const std::string why = is_cut ? "'" + path + "' was cut to " + std::to_string(there.st_size) +
                                         " bytes by another program"
                                   : "a store into '" + path + "' failed (SIGBUS)";
    if (is_ours) ::unlink(path.c_str());
    return end_by_cut_buffers(why);
  }
  const std::uint64_t now_ns = collector_now_ns();
  if (is_ours || now_ns < next_file_check_ns_) return;
  next_file_check_ns_ = now_ns + kFileCheckNs;
  // A directory that can't be searched just now says nothing about the file.
  if (!is_seen && error != ENOENT && error != ENOTDIR) return;
  buffer_file_ = {};
  degrade("thread buffers don't survive a kill any more: '" + path +
          "' was removed; restart the recorder to have them again");
}

// Nothing of ours is stored into the file's pages from here on. What lay in them can't be told from
// what somebody may write there: recording ends.
void RecorderCore::end_by_cut_buffers(const std::string& how) {
  close_epoch();
  arena_->leave_file();
  publish_arena(nullptr);
  const std::string why =
      "recording has ended: " + how + "; what was in no segment is lost; start the recorder again";
  {
    const std::lock_guard lock(mutex_);
    close_epoch();  // enable() may have opened one in between
    is_enabled_ = false;
    ended_ = why;
  }
  buffer_file_ = {};
  collector_->lose_buffers();
  message(why);
}

void RecorderCore::make_clock() {
  const ClockSource source = choose_clock(options_.clock);
  clock_text_ = source.description;
  ClockLine line{0, 0, 0};
  if (source.uses_tsc) {
    const ClockPair first = read_clock_pair();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    calibration_.emplace(first, read_clock_pair());
    line = calibration_->line();
    if (line.mult == 0) {
      clock_text_ = "kernel: the time-stamp counter is slower than 1 GHz";
      calibration_.reset();
    }
  }
  publish_clock(line);
  arena_->header().clock = line;
}

Status RecorderCore::prepare() {
  boot_id_ = seams_.boot_id.empty() ? make_boot_id() : seams_.boot_id;
  if (!options_.directory.empty()) {
    auto run = RunDirectory::create(options_.directory, boot_id_);
    if (!run) return Status::failure(run.error().message);
    run_.emplace(std::move(*run));
  }
  if (Status made = make_arena(); !made) return made;
  make_clock();
  const std::string shortage = descriptor_shortage();
  if (!shortage.empty()) {
    degrade("dead runs aren't looked at, and sources that open files are off: " + shortage);
  }
  if (run_) {
    const bool has_file = buffer_file_.st_ino != 0;
    const bool sees_dead_runs = options_.removes_dead_runs && shortage.empty();
    const auto tell = [this](const std::string& text) { message(text); };
    auto store = std::make_unique<DiskStore>(
        *run_, DiskStoreOptions{options_.budget_bytes, has_file ? arena_->header().total_bytes : 0,
                                sees_dead_runs, tell});
    if (sees_dead_runs) siblings_ = std::make_unique<SiblingRecovery>(*store, tell);
    store_ = std::move(store);
  } else {
    store_ = std::make_unique<MemoryStore>(options_.budget_bytes);
  }
  CollectorSeams clock = seams_.clock;
  if (!clock.now_ns) clock.now_ns = kernel_now_ns;
  if (!clock.realtime_ns) clock.realtime_ns = realtime_now_ns;
  clock.has_sources = seams_.has_sources;
  SegmentWriterOptions writer;
  writer.segment_bytes = segment_bytes_of(options_);
  writer.rotation_ns = static_cast<std::uint64_t>(options_.rotation_period.count());
  writer.metadata = [this] { return metadata(); };
  writer.realtime_ns = clock.realtime_ns;
  writer.message = [this](const std::string& text) { message(text); };
  writer_ = std::make_unique<SegmentWriter>(*store_, *arena_, std::move(writer));
  collector_ = std::make_unique<Collector>(
      *arena_, *store_, *writer_, std::move(clock), [this] { return metadata_version(); },
      calibration_ ? &*calibration_ : nullptr, budget_of(options_));
  if (options_.starts_disabled) collector_->off_stretch().begin(now_ns());
  take_late_losses();  // of calls that outlasted the recorder before
  span_recording_begins();
  reset_source_counts();
  reset_stream_counts();
  publish_arena(arena_.get());
  return {};
}

Status RecorderCore::start_thread() {
  // The host's signals are the host's threads' business; but a fault in a user's source is a fault
  // of this thread, and blocked it would end the process with no turn for any handler.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
    sigdelset(&blocked, fault);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  Status status;
  try {
    thread_ = std::thread([self = shared_from_this()] { self->run(); });
  } catch (const std::exception& e) {
    status = Status::failure(std::string("cannot start the collector's thread: ") + e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

std::uint64_t RecorderCore::collector_now_ns() const {
  return seams_.clock.now_ns ? seams_.clock.now_ns() : kernel_now_ns();
}

// On Linux this is the priority of the calling thread alone; refused, it runs at the host's.
void RecorderCore::be_nice() {
  if (is_nice_) return;
  is_nice_ = true;
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kCollectorNice);
}

void RecorderCore::run() {
  const WorkScope own(true);
  mark_collector_thread();
  exempt_this_thread();
  const std::uint64_t began_ns = collector_now_ns();
  Heartbeat heartbeat = make_heartbeat();
  std::uint64_t next_look_ns = began_ns + kAloneNs;
  bool is_alone = false;
  std::unique_lock lock(mutex_);
  while (!may_finish_ && !is_alone) {
    const std::uint64_t asked = rotations_asked_;
    const bool rotates = asked != rotations_done_;
    lock.unlock();
    std::uint64_t sleep_ns = 0;
    bool is_sealed = true;
    try {
      if (rotates) is_sealed = collector_->seal_all();
      sleep_ns = step();
      const bool recovers = siblings_ != nullptr && siblings_->is_recovering();
      if (recovers || collector_now_ns() - began_ns >= kYoungNs) be_nice();
    } catch (const std::exception& e) {
      // Out of memory, or a user's message callback that throws: this pass is over, the next comes.
      is_sealed = false;
      sleep_ns = 250'000'000;
    }
    if (const std::uint64_t now_ns = collector_now_ns(); now_ns >= next_look_ns) {
      next_look_ns = now_ns + kAloneNs;
      is_alone = is_last_thread();
    }
    lock.lock();
    if (rotates) {
      rotations_done_ = asked;
      if (!is_sealed) ++rotations_failed_;
      done_.notify_all();
    }
    const LateWakeSink sink = late_wake_sink();
    if (sink != nullptr) heartbeat.sleeps(sleep_ns);
    wake_.wait_for(lock, std::chrono::nanoseconds(sleep_ns),
                   [&] { return is_alone || may_finish_ || rotations_asked_ != rotations_done_; });
    if (sink == nullptr) continue;
    if (const auto late = heartbeat.wakes()) {
      lock.unlock();
      sink(*late);
      lock.lock();
    }
  }
  is_alone = is_alone && !may_finish_;
  if (is_alone) {
    mark_stopped();
    close_epoch();
    is_enabled_ = false;
  }
  lock.unlock();
  finish();
  leave_chunk(t_buffer);
  lock.lock();
  is_finished_ = true;
  if (is_alone && thread_.joinable()) thread_.detach();  // nobody is there to join it
  done_.notify_all();
  lock.unlock();
  if (is_alone) end_as_the_main_thread_did();
}

std::uint64_t RecorderCore::step() {
  check_buffer_file();
  const std::uint64_t sleep_ns = collector_->step();
  if (siblings_ == nullptr) return sleep_ns;
  // While the host needs the collector, the dead wait.
  const bool is_tight = arena_->free_chunks() < arena_->chunk_count() / 2;
  const bool has_more = is_tight || siblings_->step();
  return has_more ? std::min(sleep_ns, kRecoveryPauseNs) : sleep_ns;
}

// The last drain and seal; epoch is closed.
void RecorderCore::finish() {
  bool is_complete = false;
  try {
    check_buffer_file();
    collector_->rest_sources();
    is_complete = collector_->seal_all();
  } catch (const std::exception&) {
    is_complete = false;
  }
  try {
    if (siblings_ != nullptr) siblings_->leave();
  } catch (const std::exception&) {
    // Out of memory: whoever comes next makes room.
  }
  close_gate();
  publish_shedding(kKeepAll, false);
  const std::lock_guard lock(mutex_);
  is_complete_ = is_complete;
}

// Two numbers: the child of a vfork has its parent's memory, and one in a new namespace may have
// its parent's id.
bool RecorderCore::is_ours() const { return ::getpid() == pid_ && process_number() == process_; }

bool RecorderCore::is_running() const {
  if (!is_ours()) return false;
  const std::lock_guard lock(mutex_);
  return !is_stopping_;
}

void RecorderCore::enable() {
  if (!is_ours()) return;
  const std::lock_guard lock(mutex_);
  if (is_stopping_ || is_enabled_ || !ended_.empty()) return;
  is_enabled_ = true;
  open_epoch();
  collector_->off_stretch().end(now_ns());  // rather too late: nothing is judged across it
}

void RecorderCore::disable() {
  if (!is_ours()) return;
  const std::lock_guard lock(mutex_);
  if (is_stopping_ || !is_enabled_) return;
  is_enabled_ = false;
  collector_->off_stretch().begin(now_ns());
  close_epoch();
}

// The arena stays mapped while threads hold on to it: a reader from outside must not take what they
// were in for what they are in.
void RecorderCore::mark_stopped() {
  __atomic_store_n(&arena_->header().stopped_ns, now_ns(), __ATOMIC_RELEASE);
}

void RecorderCore::set_metadata(const std::string& key, const std::string& value) {
  if (!is_ours()) return;
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(own_metadata_.begin(), own_metadata_.end(),
                               [&](const auto& entry) { return entry.first == key; });
  if (at != own_metadata_.end()) {
    at->second = value;
  } else {
    own_metadata_.emplace_back(key, value);
  }
  ++metadata_version_;
}

std::uint64_t RecorderCore::metadata_version() const {
  const std::lock_guard lock(mutex_);
  return metadata_version_ + runtime_metadata_version() + stream_sources_metadata_version();
}

Metadata RecorderCore::metadata() const {
  Metadata entries{
      {"service",
       options_.service_name.empty() ? program_invocation_short_name : options_.service_name},
      {"host", host_name()},
      {"boot_id", boot_id_},
      {"process.available_parallelism", std::to_string(available_parallelism())},
      {"dial9.writer", "dial9-cpp"},
      {"dial9.version", DIAL9_VERSION},
      {"dial9.clock", clock_text_},
  };
  if (!kernel_boot_id().empty()) entries.emplace_back("kernel.boot_id", kernel_boot_id());
  // Whoever reads the thread buffers from outside must know that polls may be missing.
  if (budget_of(options_).is_set()) entries.emplace_back("dial9.governed", "true");
  const Metadata runtimes = runtime_metadata();
  entries.insert(entries.end(), runtimes.begin(), runtimes.end());
  const Metadata sources = stream_sources_metadata();
  entries.insert(entries.end(), sources.begin(), sources.end());
  entries.insert(entries.end(), options_.metadata.begin(), options_.metadata.end());
  const std::lock_guard lock(mutex_);
  if (!degraded_.empty()) entries.emplace_back("dial9.degraded", degraded_);
  entries.insert(entries.end(), own_metadata_.begin(), own_metadata_.end());
  return entries;
}

bool RecorderCore::rotate(std::chrono::nanoseconds deadline) {
  if (!is_ours()) return false;
  std::unique_lock lock(mutex_);
  if (is_stopping_) return false;
  if (!seams_.has_thread) {
    lock.unlock();
    return collector_->seal_all();
  }
  const std::uint64_t mine = ++rotations_asked_;
  const std::uint64_t failed_before = rotations_failed_;
  wake_.notify_all();
  const bool is_done =
      done_.wait_for(lock, waitable(deadline), [&] { return rotations_done_ >= mine; });
  return is_done && rotations_failed_ == failed_before;
}

static std::vector<SourceStatus> all_source_statuses() {
  std::vector<SourceStatus> all = source_statuses();
  for (SourceStatus& status : stream_source_statuses()) all.push_back(std::move(status));
  return all;
}

StopResult RecorderCore::stop(std::chrono::nanoseconds deadline) {
  StopResult result;
  if (!is_ours()) return result;
  std::unique_lock lock(mutex_);
  if (is_stopping_) return result;
  mark_stopped();
  close_epoch();
  is_enabled_ = false;
  is_stopping_ = true;
  // On this thread: the collector, which is niced, may wait long for its turn after a sleep.
  lock.unlock();
  std::this_thread::sleep_for(kQuiesce);
  lock.lock();
  may_finish_ = true;
  wake_.notify_all();
  if (!seams_.has_thread) {
    lock.unlock();
    finish();
    lock.lock();
    is_finished_ = true;
  }
  const bool is_done = done_.wait_for(lock, waitable(deadline), [&] { return is_finished_; });
  const bool is_complete = is_complete_;
  result.unfinished = ended_;
  lock.unlock();
  runtime_release();
  publish_arena(nullptr);
  const CollectorCounts counts = collector_->counts();
  result.sources = all_source_statuses();
  result.events_written = counts.events_written;
  result.events_dropped = total_losses();
  if (is_done) result.events_late = arena_->undrained_events();
  result.events_late += take_late_losses();
  result.events_dropped += result.events_late;
  result.is_complete = is_done && is_complete && result.unfinished.empty();
  if (!is_done) {
    result.unfinished =
        "the collector didn't finish by the deadline: the active segment isn't sealed";
    // It may be stuck in a write. It holds on to this object and ends by itself when it can.
    if (thread_.joinable()) thread_.detach();
  } else {
    if (!is_complete) {
      result.unfinished = "the last segment isn't sealed: " + counts.failure;
      if (has_buffer_file()) {
        result.unfinished += "; `dial9 recover` makes a segment of what it lacks";
      }
    }
    if (thread_.joinable()) thread_.join();
    // Of what couldn't be written, and of its count, the buffers are the only record.
    const bool keeps_file = !is_complete && has_buffer_file();
    if (run_) {
      store_.reset();
      remove_run(keeps_file);
    }
    retire_arena(std::move(arena_), keeps_file);
  }
  release_process(this);
  return result;
}

std::uint64_t RecorderCore::total_losses() const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < kLossCauses; ++i)
    total += arena_->loss_total(static_cast<LossCause>(i));
  return total;
}

RecorderStatus RecorderCore::status() const {
  RecorderStatus status;
  if (!is_ours()) {
    status.reason = "this is the child of a fork; the recorder belongs to its parent";
    return status;
  }
  bool is_stopping = false;
  bool is_enabled = false;
  std::string degraded;
  std::string ended;
  {
    const std::lock_guard lock(mutex_);
    is_stopping = is_stopping_;
    is_enabled = is_enabled_;
    degraded = degraded_;
    ended = ended_;
  }
  status.clock = clock_text_;
  if (is_stopping) {
    status.reason = "stopped";
    return status;
  }
  const CollectorCounts counts = collector_->counts();
  if (run_) status.directory = run_->path();
  status.is_recording = is_enabled && counts.failure.empty();
  status.reason = !ended.empty()            ? ended
                  : !is_enabled             ? "disabled"
                  : !counts.failure.empty() ? counts.failure
                                            : degraded;
  status.events_written = counts.events_written;
  status.bytes_written = counts.bytes_written;
  status.bytes_on_disk = counts.bytes_held;
  status.segments_sealed = counts.segments_sealed;
  status.segments_evicted = counts.segments_evicted;
  status.events_per_second = counts.events_per_second;
  status.bytes_per_second = counts.bytes_per_second;
  put_bill(counts.bill, status);
  if (counts.last_event_ns != 0) {
    status.last_event_age_ns = collector_now_ns() - counts.last_event_ns;
  }
  for (std::size_t i = 0; i < kLossCauses; ++i) {
    const auto cause = static_cast<LossCause>(i);
    const std::uint64_t count = arena_->loss_total(cause);
    if (count == 0) continue;
    status.events_dropped += count;
    status.dropped_by_cause.push_back({loss_cause_name(cause), count});
  }
  status.chunks_total = arena_->chunk_count();
  status.chunks_in_use = arena_->chunk_count() - arena_->free_chunks();
  status.source_failures = source_failures();
  status.sources = all_source_statuses();
  if (siblings_ != nullptr) {
    status.runs_recovered = siblings_->runs();
    status.events_recovered = siblings_->events();
    status.runs_removed = siblings_->removed();
  }
  return status;
}

std::vector<SegmentBytes> RecorderCore::sealed_segments() const {
  if (!is_ours() || store_ == nullptr) return {};
  return store_->sealed_segments();
}

Status RecorderCore::dump(const std::string& path) const {
  if (!options_.directory.empty()) {
    return Status::failure("this recorder writes to a directory; its segments are there already");
  }
  const std::vector<SegmentBytes> segments = sealed_segments();
  if (segments.empty()) return Status::failure("nothing is sealed yet; call rotate() first");
  const SignalShield shield;
  const std::string partial = path + ".partial";
  const GuardedFd fd = GuardedFd::open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!fd) return Status::failure(os_error(errno, "create", partial).error().message);
  for (const SegmentBytes& segment : segments) {
    std::size_t done = 0;
    while (done < segment.bytes.size()) {
      const ssize_t n = ::write(fd.get(), segment.bytes.data() + done, segment.bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int error = errno;
        ::unlink(partial.c_str());
        return Status::failure(os_error(error, "write", partial).error().message);
      }
      done += static_cast<std::size_t>(n);
    }
  }
  if (::rename(partial.c_str(), path.c_str()) != 0) {
    return Status::failure(os_error(errno, "rename to", path).error().message);
  }
  return {};
}

}  // namespace dial9::internal
