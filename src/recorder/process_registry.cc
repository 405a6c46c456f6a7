// See process_registry.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/process_registry.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "base/plural.h"
#include "dial9/source.h"
#include "recorder/fork_child.h"
#include "recorder/kept_files.h"
#include "recorder/own_work.h"
#include "recorder/recording_state.h"
#include "recorder/stay_loaded.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint32_t kFailuresBeforeBackoff = 10;
constexpr std::uint32_t kMaxBackoff = 64;

struct Source {
  std::string name;
  std::uint64_t period_ns = 0;
  SourcePace pace = SourcePace::kAlways;
  std::function<void()> sample;
  std::uint64_t next_ns = 0;  // 0: at once
  std::uint32_t failures_in_a_row = 0;
  std::string last_failure;
  std::uint64_t calls = 0;   // since the recorder started
  std::uint64_t events = 0;  // that they recorded
  std::uint32_t backoff = 1;
  bool is_running = false;
};

struct Registry {
  std::mutex mutex;  // guards all below
  std::condition_variable source_done;
  std::shared_ptr<RecorderCore> core;
  std::string core_description;
  std::vector<std::shared_ptr<Source>> sources;
  std::uint64_t failures = 0;
  std::thread::id running_on;
  bool is_held_for_fork = false;
  Registry* of_parent = nullptr;  // its recorder goes on in the parent; its object is left alone
};
constinit std::atomic<Registry*> g_registry{nullptr};

void hold_for_fork() {
  notice_fork();
  Registry& r = *g_registry.load(std::memory_order_acquire);
  r.mutex.lock();
  r.is_held_for_fork = true;
}
void release_in_parent() {
  Registry& r = *g_registry.load(std::memory_order_acquire);
  r.is_held_for_fork = false;
  r.mutex.unlock();
}

// The parent's lock stays as it is: a thread may hold it that doesn't exist here. Its sources are
// taken over where no thread was changing them, as after every fork() with its handlers.
void begin_anew_in_child() {
  Registry& before = *g_registry.load(std::memory_order_acquire);
  if (auto* own = new (std::nothrow) Registry) {
    own->of_parent = &before;
    try {
      if (before.is_held_for_fork || before.mutex.try_lock()) own->sources = before.sources;
    } catch (const std::bad_alloc&) {  // none, then
    }
    for (const auto& source : own->sources) source->is_running = false;
    g_registry.store(own, std::memory_order_release);
  }
  close_kept_files();
}

// Made at first use and never destroyed: threads may come here after main.
Registry& registry() {
  notice_fork();
  static const bool is_made = [] {
    g_registry.store(new Registry, std::memory_order_release);
    install_process_hooks();
    stay_loaded();
    pthread_atfork(hold_for_fork, release_in_parent, nullptr);
    return add_child_handler(begin_anew_in_child);
  }();
  static_cast<void>(is_made);
  return *g_registry.load(std::memory_order_acquire);
}

Status failed(const std::string& text) { return Status::failure(text); }

// Outside the lock; says whether the call was good.
// Why it failed; empty: it didn't.
std::string call_source(const Source& source, const std::function<std::uint64_t()>& clock,
                        std::uint64_t* events) {
  const std::uint64_t start = clock();
  const std::uint64_t events_before = t_buffer.events();
  std::string failure;
  const WorkScope hosts(false);
  try {
    source.sample();
  } catch (const std::exception& error) {
    failure = std::string("its callback threw: ") + error.what();
  } catch (...) {
    failure = "its callback threw";
  }
  const std::uint64_t took_ns = clock() - start;
  *events = t_buffer.events() - events_before;
  if (failure.empty() && took_ns > source.period_ns / 10) {
    failure = "its callback took " + std::to_string(took_ns / 1000) +
              " us, over a tenth of its period of " + std::to_string(source.period_ns / 1000) +
              " us";
  }
  return failure;
}
void note_result(Registry& r, Source& source, std::string failure) {
  if (failure.empty()) {
    source.failures_in_a_row = 0;
    source.backoff = 1;
    return;
  }
  ++r.failures;
  source.last_failure = std::move(failure);
  if (++source.failures_in_a_row % kFailuresBeforeBackoff == 0) {
    source.backoff = std::min(source.backoff * 2, kMaxBackoff);
  }
}

}  // namespace

Status claim_process(const std::shared_ptr<RecorderCore>& core, const std::string& description) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.core != nullptr) {
    return failed("a recorder runs in this process already (" + r.core_description +
                  "); stop it first, or use its handle");
  }
  r.core = core;
  r.core_description = description;
  return {};
}

void release_process(const RecorderCore* core) {
  Registry& r = registry();
  std::shared_ptr<RecorderCore> last;  // may be the last reference: goes after the lock
  const std::lock_guard lock(r.mutex);
  if (r.core.get() == core) last = std::move(r.core);
}

Status add_paced_source(const std::string& name, std::chrono::nanoseconds period, SourcePace pace,
                        std::function<void()> sample) {
  if (name.empty() || !sample) return failed("a source needs a name and a callback");
  if (period < std::chrono::milliseconds(1)) {
    return failed("source '" + name + "': the period must be at least 1 ms");
  }
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const auto& other : r.sources) {
    if (other->name == name) return failed("a source '" + name + "' exists already");
  }
  auto source = std::make_shared<Source>();
  source->name = name;
  source->period_ns = static_cast<std::uint64_t>(period.count());
  source->pace = pace;
  source->sample = std::move(sample);
  r.sources.push_back(std::move(source));
  return {};
}

SourceRun run_due_sources(std::uint64_t now_ns, const std::function<std::uint64_t()>& clock) {
  Registry& r = registry();
  SourceRun run{kNever, kNever};
  std::unique_lock lock(r.mutex);
  r.running_on = std::this_thread::get_id();
  const std::vector<std::shared_ptr<Source>> sources = r.sources;
  for (const auto& source : sources) {
    const bool is_there = std::find(r.sources.begin(), r.sources.end(), source) != r.sources.end();
    if (!is_there) continue;  // removed by a callback before it
    // A clock that starts anew (another recorder, a test's) doesn't leave a source waiting.
    const std::uint64_t wait = source->period_ns * source->backoff;
    if (now_ns >= source->next_ns || source->next_ns - now_ns > wait) {
      source->is_running = true;
      lock.unlock();
      std::uint64_t events = 0;
      std::string failure = call_source(*source, clock, &events);
      lock.lock();
      source->is_running = false;
      ++source->calls;
      source->events += events;
      r.source_done.notify_all();
      note_result(r, *source, std::move(failure));
      source->next_ns = now_ns + source->period_ns * source->backoff;
    }
    std::uint64_t& next =
        source->pace == SourcePace::kAlways ? run.next_always_ns : run.next_busy_ns;
    next = std::min(next, source->next_ns);
  }
  r.running_on = {};
  return run;
}

void reset_source_counts() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const auto& source : r.sources) {
    source->calls = source->events = source->failures_in_a_row = 0;
    source->last_failure.clear();
  }
}

std::vector<SourceStatus> source_statuses() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<SourceStatus> statuses;
  for (const auto& source : r.sources) {
    SourceStatus status{source->name, source->events, {}};
    if (source->failures_in_a_row != 0) {
      status.reason = source->last_failure + ", " + std::to_string(source->failures_in_a_row) +
                      " times in a row";
    } else if (source->calls == 0) {
      status.reason = "not called yet: nothing was recorded, or it isn't due";
    } else if (source->events == 0) {
      status.reason = "called " + plural(source->calls, "time") + ", it recorded nothing";
    }
    statuses.push_back(std::move(status));
  }
  return statuses;
}

std::uint64_t source_failures() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.failures;
}

}  // namespace dial9::internal

namespace dial9 {

Status add_source(const std::string& name, std::chrono::nanoseconds period,
                  std::function<void()> sample) noexcept {
  try {
    return internal::add_paced_source(name, period, internal::SourcePace::kAlways,
                                      std::move(sample));
  } catch (...) {
    return Status::failure("out of memory");  // short enough not to allocate
  }
}

bool remove_source(const std::string& name) noexcept {
  internal::Registry& r = internal::registry();
  std::unique_lock lock(r.mutex);
  const auto at = std::find_if(r.sources.begin(), r.sources.end(),
                               [&](const auto& source) { return source->name == name; });
  if (at == r.sources.end()) return false;
  const std::shared_ptr<internal::Source> source = *at;
  r.sources.erase(at);
  if (r.running_on == std::this_thread::get_id()) return true;  // from inside a callback
  r.source_done.wait(lock, [&] { return !source->is_running; });
  return true;
}

}  // namespace dial9
