// See run_store.h.
// Strongest property: the mutex is never held while bytes are read or decoded.
// Spec: docs/spec/http_api.md, "Runs".
// SPDX-License-Identifier: Apache-2.0
#include "server/run_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "analysis/loader.h"
#include "server/memory_reserve.h"

namespace dial9::server {

std::string_view to_string(RunState state) {
  switch (state) {
    case RunState::kClosed:
      return "closed";
    case RunState::kLoading:
      return "loading";
    case RunState::kReady:
      return "ready";
    case RunState::kFailed:
      return "failed";
    case RunState::kCancelled:
      return "cancelled";
  }
  return "closed";
}

// Atomics are written by the loader and read by status() under the mutex; relaxed, since each is a
// number for people and the result itself is handed over under the mutex.
struct RunStore::Entry {
  RunInfo info;
  RunState state = RunState::kClosed;
  std::string error;
  bool had_no_memory = false;  // why it failed, where there was none for an error either
  std::shared_ptr<const Run> run;
  std::uint64_t used = 0;
  std::atomic<std::uint64_t> bytes_done{0};
  std::atomic<std::uint64_t> events{0};
  std::atomic<bool> is_cancelled{false};
};

namespace {

constexpr const char* kNoMemory =
    "out of memory: close other runs, or start the server with a smaller --memory";

std::optional<RunInfo> find_run(std::vector<RunInfo>& runs, const std::string& id) {
  for (RunInfo& run : runs) {
    if (run.id == id) return std::move(run);
  }
  return std::nullopt;
}

std::string make_salt() {
  static std::atomic<std::uint64_t> stores{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) + "." +
         std::to_string(stores.fetch_add(1, std::memory_order_relaxed));
}

std::unexpected<Error> no_such_run(const std::string& run) {
  return make_error(ErrorCode::kNotFound, "no run '" + run + "' here: reload the list of runs");
}

}  // namespace

RunStore::RunStore(std::unique_ptr<RunSource> source, StoreOptions options)
    : source_(std::move(source)),
      options_(options),
      salt_(make_salt()),
      worker_([this] { work(); }) {}

RunStore::~RunStore() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    for (auto& [id, entry] : entries_) entry->is_cancelled.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
  worker_.join();
}

Result<RunStatus> RunStore::open(const std::string& run) {
  auto runs = source_->list();
  if (!runs) return std::unexpected(runs.error());
  auto info = find_run(*runs, run);
  if (!info) return no_such_run(run);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(run);
  std::shared_ptr<Entry> entry = found == entries_.end() ? nullptr : found->second;
  const bool is_there =
      entry && (entry->state == RunState::kLoading ||
                (entry->state == RunState::kReady && entry->info.bytes == info->bytes &&
                 entry->info.modified_ms == info->modified_ms));
  if (!is_there) {
    entry = std::make_shared<Entry>();
    entry->info = std::move(*info);
    // Closed until it waits for the loader: there may be no memory for any of these steps.
    std::shared_ptr<Entry>& place = entries_.try_emplace(run, entry).first->second;
    waiting_.push_back(entry);
    entry->state = RunState::kLoading;
    place = entry;
    changed_.notify_all();
  }
  entry->used = ++last_use_;
  return status_of(*entry);
}

Result<RunStatus> RunStore::status(const std::string& run) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(run);
    if (found != entries_.end()) return status_of(*found->second);
  }
  auto runs = source_->list();
  if (!runs) return std::unexpected(runs.error());
  const auto info = find_run(*runs, run);
  if (!info) return no_such_run(run);
  RunStatus out;
  out.run = run;
  out.bytes_total = info->bytes;
  return out;
}

RunState RunStore::state(const std::string& run) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(run);
  return found == entries_.end() ? RunState::kClosed : found->second->state;
}

Result<RunStatus> RunStore::close(const std::string& run) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(run);
    if (found != entries_.end()) {
      Entry& entry = *found->second;
      if (entry.state == RunState::kLoading) {
        entry.is_cancelled.store(true, std::memory_order_relaxed);
        entry.state = RunState::kCancelled;
      } else {
        entry.state = RunState::kClosed;
        entry.run.reset();
      }
      return status_of(entry);
    }
  }
  return status(run);
}

std::shared_ptr<const Run> RunStore::get(const std::string& run) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(run);
  if (found == entries_.end() || found->second->state != RunState::kReady) return nullptr;
  found->second->used = ++last_use_;
  return found->second->run;
}

void RunStore::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
}

void RunStore::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (is_ending_) return;
    const std::shared_ptr<Entry> entry = waiting_.front();
    waiting_.pop_front();
    is_busy_ = true;
    lock.unlock();
    bool had_no_memory = false;
    try {
      const MemoryReserve::Request request;
      load(entry);
    } catch (const std::bad_alloc&) {
      had_no_memory = true;
    }
    lock.lock();
    if (had_no_memory && entry->state == RunState::kLoading) {
      entry->state = RunState::kFailed;
      entry->had_no_memory = true;
    }
    is_busy_ = false;
    changed_.notify_all();
  }
}

void RunStore::load(const std::shared_ptr<Entry>& entry) {
  analysis::LoadOptions load_options;
  load_options.max_memory_bytes = options_.budget_bytes;
  analysis::Loader loader(load_options);
  bool was_read = entry->info.files.empty();
  std::string problem;
  const auto is_cancelled = [&] { return entry->is_cancelled.load(std::memory_order_relaxed); };
  for (std::size_t i = 0; i < entry->info.files.size() && !is_cancelled(); ++i) {
    loader.begin_input(entry->info.files[i].name);
    const auto read = source_->read(entry->info, i, [&](std::span<const std::uint8_t> bytes) {
      const auto fed = loader.feed(bytes);
      entry->bytes_done.fetch_add(bytes.size(), std::memory_order_relaxed);
      entry->events.store(loader.events(), std::memory_order_relaxed);
      make_room(*entry, loader);
      return fed.has_value() && !is_cancelled();
    });
    // What ended early or is damaged is kept in the trace's own list of inputs.
    (void)loader.end_input();
    if (read) {
      was_read = true;
    } else {
      problem = read.error().message;
    }
  }
  if (is_cancelled()) return;
  if (!was_read) {
    const std::lock_guard lock(mutex_);
    entry->state = RunState::kFailed;
    entry->error = std::move(problem);
    return;
  }
  publish(entry, loader.finish());
}

void RunStore::publish(const std::shared_ptr<Entry>& entry, analysis::Trace trace) {
  std::string problem;
  if (trace.events == 0) {
    problem = "this run holds no events";
    for (const auto& input : trace.inputs) {
      if (input.error) problem = input.name + ": " + input.error->message;
    }
  }
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    generation = ++last_generation_;
  }
  std::shared_ptr<const Run> run;
  if (problem.empty()) {
    run = std::make_shared<const Run>(entry->info.name, generation, std::move(trace));
  }
  const std::lock_guard lock(mutex_);
  if (entry->state != RunState::kLoading) return;  // cancelled meanwhile
  entry->state = problem.empty() ? RunState::kReady : RunState::kFailed;
  entry->error = std::move(problem);
  entry->run = std::move(run);
  evict(*entry, entry->run ? entry->run->bytes() : 0);
}

void RunStore::make_room(const Entry& entry, const analysis::Loader& loader) {
  const double peak = static_cast<double>(loader.bytes()) * analysis::Loader::kFinishPeak;
  const std::lock_guard lock(mutex_);
  evict(entry, static_cast<std::size_t>(peak));
}

void RunStore::evict(const Entry& keep, std::size_t bytes) {
  while (true) {
    std::size_t total = bytes;
    Entry* oldest = nullptr;
    for (auto& [id, entry] : entries_) {
      if (!entry->run || entry.get() == &keep) continue;
      total += entry->run->bytes();
      if (!oldest || entry->used < oldest->used) oldest = entry.get();
    }
    if (total <= options_.budget_bytes || !oldest) return;
    oldest->run.reset();
    oldest->state = RunState::kClosed;
  }
}

RunStatus RunStore::status_of(const Entry& entry) const {
  RunStatus out;
  out.run = entry.info.id;
  out.state = entry.state;
  out.bytes_total = entry.info.bytes;
  out.bytes_done = entry.bytes_done.load(std::memory_order_relaxed);
  out.events = entry.events.load(std::memory_order_relaxed);
  out.generation = entry.run ? entry.run->generation() : 0;
  out.error = entry.had_no_memory ? kNoMemory : entry.error;
  return out;
}

}  // namespace dial9::server
