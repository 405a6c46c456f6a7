// Runtimes, workers and threads: the cold paths of the seam. A thread comes here when it first
// works for a runtime and when it ends; everything else finds what it needs through its
// ThreadState.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <new>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/fork_child.h"
#include "recorder/runtime_host.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {

__thread ThreadState t_state;
__thread runtime::TaskRef t_task;
constinit Registry g_registry;

namespace {

pthread_once_t g_once = PTHREAD_ONCE_INIT;
pthread_key_t g_exit_key;
bool g_has_exit_key = false;
constinit std::atomic<void (*)()> g_worker_hook{nullptr};

Runtime* runtime_of(runtime::RuntimeId id) noexcept {
  const std::uint32_t count = g_registry.runtime_count.load(std::memory_order_acquire);
  return id == 0 || id > count ? nullptr : &g_registry.runtimes[id];
}

void metadata_changed() noexcept {
  g_registry.metadata_version.fetch_add(1, std::memory_order_release);
}

// Objects that live as long as the process, given out from pages of their own.
void* allocate_for_ever(std::size_t size) noexcept {
  static constinit char* at = nullptr;
  static constinit std::size_t left = 0;
  constexpr std::size_t kSlabBytes = 64 << 10;
  size = (size + 63) / 64 * 64;
  if (left < size) {
    void* slab =
        mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab == MAP_FAILED) return nullptr;
    at = static_cast<char*>(slab);
    left = kSlabBytes;
  }
  void* result = at;
  at += size;
  left -= size;
  return result;
}

void move_into(std::atomic<std::uint64_t>& from, std::atomic<std::uint64_t>& to) noexcept {
  to.fetch_add(from.exchange(0, std::memory_order_relaxed), std::memory_order_release);
}

void unlink_from_runtime(Binding& binding) noexcept {
  Runtime* runtime = runtime_of(binding.runtime);
  for (Binding** at = &runtime->bindings; *at != nullptr; at = &(*at)->next_of_runtime) {
    if (*at != &binding) continue;
    *at = binding.next_of_runtime;
    break;
  }
  move_into(binding.counters.pushed, runtime->gone.pushed);
  move_into(binding.counters.popped, runtime->gone.popped);
  move_into(binding.counters.spawned, runtime->gone.spawned);
  move_into(binding.counters.terminated, runtime->gone.terminated);
  if (binding.worker != kNoWorker) g_registry.is_worker_busy[binding.worker] = false;
}

void release_thread(ThreadRecord& record) noexcept {
  const RegistryLock lock;
  for (Binding* binding = record.bindings; binding != nullptr;) {
    Binding* next = binding->next_of_thread;
    unlink_from_runtime(*binding);
    binding->worker = kNoWorker;
    binding->next_of_thread = g_registry.free_bindings;
    g_registry.free_bindings = binding;
    binding = next;
  }
  for (ThreadRecord** at = &g_registry.threads; *at != nullptr; at = &(*at)->next) {
    if (*at != &record) continue;
    *at = record.next;
    break;
  }
  record.bindings = nullptr;
  record.worker.store(kNoWorker, std::memory_order_relaxed);
  record.has_reading = false;
  record.next = g_registry.free_threads;
  g_registry.free_threads = &record;
}

void on_thread_exit(void*) noexcept {
  notice_fork();
  ThreadState& t = t_state;
  t.has_exited = true;
  ThreadRecord* record = t.record;
  if (record == nullptr) return;
  t.record = nullptr;
  t.binding = t.counting = nullptr;
  t.counting_context = nullptr;
  t.is_parked = false;
  note_binding(t);
  sched_close(record->sched_file, record->tid);
  release_thread(*record);
}

// The other threads are gone, perhaps in the middle of a change: all starts anew, and nothing of
// the parent's is reused but the runtimes' names.
void after_fork_in_child() noexcept {
  sched_close_after_fork();
  ThreadState& t = t_state;
  t.record = nullptr;
  t.binding = t.counting = nullptr;
  t.counting_context = nullptr;
  t.is_parked = false;
  note_binding(t);
  t.tid = 0;
  new (&g_registry.mutex) std::mutex;
  g_registry.threads = nullptr;
  g_registry.free_threads = nullptr;
  g_registry.free_bindings = nullptr;
  std::memset(g_registry.is_worker_busy, 0, sizeof g_registry.is_worker_busy);
  const std::uint32_t count = g_registry.runtime_count.load(std::memory_order_relaxed);
  for (std::uint32_t id = 1; id <= count; ++id) {
    g_registry.runtimes[id].bindings = nullptr;
    for (auto* counter :
         {&g_registry.runtimes[id].gone.pushed, &g_registry.runtimes[id].gone.popped,
          &g_registry.runtimes[id].gone.spawned, &g_registry.runtimes[id].gone.terminated}) {
      counter->store(0, std::memory_order_relaxed);
    }
  }
}

void install_hooks() noexcept {
  g_has_exit_key = pthread_key_create(&g_exit_key, on_thread_exit) == 0;
  add_child_handler(after_fork_in_child);
}

// Under the mutex.
ThreadRecord* make_thread_record() noexcept {
  ThreadRecord* record = g_registry.free_threads;
  if (record != nullptr) {
    g_registry.free_threads = record->next;
  } else {
    void* memory = allocate_for_ever(sizeof(ThreadRecord));
    if (memory == nullptr) return nullptr;
    record = new (memory) ThreadRecord;
  }
  record->tid = own_tid();
  record->next = g_registry.threads;
  g_registry.threads = record;
  return record;
}

// Under the mutex.
Binding* make_binding(runtime::RuntimeId id) noexcept {
  Binding* binding = g_registry.free_bindings;
  if (binding != nullptr) {
    g_registry.free_bindings = binding->next_of_thread;
  } else {
    if (g_registry.bindings_made == kMaxBindings) return nullptr;
    void* memory = allocate_for_ever(sizeof(Binding));
    if (memory == nullptr) return nullptr;
    binding = new (memory) Binding;
    ++g_registry.bindings_made;
  }
  binding->runtime = id;
  Runtime& runtime = g_registry.runtimes[id];
  binding->next_of_runtime = runtime.bindings;
  runtime.bindings = binding;
  return binding;
}

// Under the mutex: a free id that the runtime had before, else the next new one.
std::uint32_t take_worker_id(runtime::RuntimeId id) noexcept {
  std::uint32_t fresh = kNoWorker;
  for (std::uint32_t worker = 0; worker < runtime::kMaxWorkers; ++worker) {
    if (worker == runtime::kUnknownWorker || worker == runtime::kBlockingWorker) continue;
    const std::uint16_t owner = g_registry.worker_runtime[worker];
    if (owner == id && !g_registry.is_worker_busy[worker]) {
      g_registry.is_worker_busy[worker] = true;
      return worker;
    }
    if (owner == 0 && fresh == kNoWorker) fresh = worker;
  }
  if (fresh != kNoWorker) {
    g_registry.worker_runtime[fresh] = static_cast<std::uint16_t>(id);
    g_registry.is_worker_busy[fresh] = true;
    metadata_changed();
  }
  return fresh;
}

[[gnu::cold, gnu::noinline]] Binding* bind_thread(ThreadState& t, runtime::RuntimeId id) noexcept {
  if (t.has_exited || runtime_of(id) == nullptr) return nullptr;
  pthread_once(&g_once, install_hooks);
  if (!g_has_exit_key) return nullptr;
  ThreadRecord* before = t.record;
  const RegistryLock lock;
  if (t.record == nullptr) t.record = make_thread_record();
  if (t.record == nullptr) return nullptr;
  if (before == nullptr) pthread_setspecific(g_exit_key, t.record);
  Binding* binding = make_binding(id);
  if (binding == nullptr) return nullptr;
  binding->next_of_thread = t.record->bindings;
  t.record->bindings = binding;
  return binding;
}

Binding* find_or_bind(ThreadState& t, runtime::RuntimeId id) noexcept {
  Binding* binding = t.record == nullptr ? nullptr : t.record->bindings;
  while (binding != nullptr && binding->runtime != id) binding = binding->next_of_thread;
  return binding != nullptr ? binding : bind_thread(t, id);
}

void copy_name(char (&to)[kRuntimeNameBytes], const char* from) noexcept {
  std::size_t n = std::strlen(from);
  if (n >= sizeof to) n = sizeof to - 1;
  std::memcpy(to, from, n);
  to[n] = 0;
}

bool is_name_taken(const char* name, runtime::RuntimeId except) noexcept {
  const std::uint32_t count = g_registry.runtime_count.load(std::memory_order_relaxed);
  for (std::uint32_t id = 1; id <= count; ++id) {
    if (id != except && std::strcmp(g_registry.runtimes[id].name, name) == 0) return true;
  }
  return false;
}

// Under the mutex: the name, or name-2, name-3, ...
void give_name(runtime::RuntimeId id, const char* wanted) noexcept {
  Runtime& runtime = g_registry.runtimes[id];
  char name[kRuntimeNameBytes];
  copy_name(name, wanted);
  const std::size_t base = std::min(std::strlen(name), sizeof name - 6);
  for (std::uint32_t n = 2; is_name_taken(name, id) && n <= runtime::kMaxRuntimes + 1; ++n) {
    char* at = name + base;
    *at++ = '-';
    if (n >= 100) *at++ = static_cast<char>('0' + n / 100);
    if (n >= 10) *at++ = static_cast<char>('0' + n / 10 % 10);
    *at++ = static_cast<char>('0' + n % 10);
    *at = 0;
  }
  copy_name(runtime.name, name);
}

}  // namespace

RegistryLock::RegistryLock() noexcept {
  notice_fork();
  g_registry.mutex.lock();
}

std::uint32_t own_tid() noexcept {
  ThreadState& t = t_state;
  if (t.tid == 0) t.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return t.tid;
}

[[gnu::cold]] Binding* counting_binding_cold(ThreadState& t, runtime::RuntimeId id) noexcept {
  Binding* binding = find_or_bind(t, id);
  if (binding == nullptr) return nullptr;
  t.counting = binding;
  t.counting_context = nullptr;
  return binding;
}

[[gnu::cold]] Binding* worker_binding_cold(ThreadState& t, runtime::RuntimeId id) noexcept {
  Binding* binding = find_or_bind(t, id);
  if (binding == nullptr) return nullptr;
  if (binding->worker == kNoWorker) {
    {
      const RegistryLock lock;
      binding->worker = take_worker_id(id);
    }
    if (const auto hook = g_worker_hook.load(std::memory_order_acquire)) hook();
  }
  t.record->worker.store(binding->worker, std::memory_order_relaxed);
  t.binding = binding;
  note_binding(t);
  return binding;
}

void set_worker_hook(void (*hook)()) noexcept {
  g_worker_hook.store(hook, std::memory_order_release);
}

std::uint64_t runtime_metadata_version() noexcept {
  return g_registry.metadata_version.load(std::memory_order_acquire);
}

std::vector<std::pair<std::string, std::string>> runtime_metadata() {
  std::vector<std::pair<std::string, std::string>> entries;
  const RegistryLock lock;
  const std::uint32_t count = g_registry.runtime_count.load(std::memory_order_relaxed);
  for (std::uint32_t id = 1; id <= count; ++id) {
    std::string workers;
    for (std::uint32_t worker = 0; worker < runtime::kMaxWorkers; ++worker) {
      if (g_registry.worker_runtime[worker] != id) continue;
      if (!workers.empty()) workers += ',';
      workers += std::to_string(worker);
    }
    if (workers.empty()) continue;
    entries.emplace_back("runtime." + std::string(g_registry.runtimes[id].name),
                         std::move(workers));
  }
  entries.emplace_back(
      "sched.wait_sample_rate",
      std::to_string(g_registry.sched_wait_sample_rate.load(std::memory_order_relaxed)));
  return entries;
}

void runtime_set_sched_wait_sample_rate(std::uint32_t rate) noexcept {
  g_registry.sched_wait_sample_rate.store(rate == 0 ? 1 : rate, std::memory_order_relaxed);
  metadata_changed();
}

void runtime_set_default_name(const std::string& name) noexcept {
  const RegistryLock lock;
  copy_name(g_registry.default_name, name.c_str());
}

}  // namespace dial9::internal

namespace dial9::runtime {

using internal::g_registry;

RuntimeId register_runtime(const char* name) noexcept {
  const internal::RegistryLock lock;
  const std::uint32_t count = g_registry.runtime_count.load(std::memory_order_relaxed);
  if (count == kMaxRuntimes) return 0;
  const RuntimeId id = count + 1;
  const bool has_own = name != nullptr && *name != 0;
  const char* fallback = g_registry.default_name[0] != 0 ? g_registry.default_name : "main";
  internal::give_name(id, has_own ? name : fallback);
  const char* given = g_registry.runtimes[id].name;
  g_registry.runtimes[id].place = internal::intern_place_locked(given, std::strlen(given));
  g_registry.runtime_count.store(id, std::memory_order_release);
  internal::metadata_changed();
  return id;
}

void rename_runtime(RuntimeId id, const char* name) noexcept {
  if (name == nullptr || *name == 0) return;
  const internal::RegistryLock lock;
  internal::Runtime* runtime = internal::runtime_of(id);
  if (runtime == nullptr) return;
  internal::give_name(id, name);
  runtime->place = internal::intern_place_locked(runtime->name, std::strlen(runtime->name));
  internal::metadata_changed();
}

WorkerId enter_worker(RuntimeId id) noexcept {
  const internal::Binding* binding = internal::worker_binding(internal::t_state, id);
  return binding == nullptr ? kUnknownWorker : internal::event_worker(binding->worker);
}

WorkerId current_worker() noexcept {
  const internal::Binding* binding = internal::t_state.binding;
  return binding == nullptr ? kUnknownWorker : internal::event_worker(binding->worker);
}

std::uint32_t current_tid() noexcept { return internal::own_tid(); }

RuntimeId current_runtime() noexcept {
  const internal::Binding* binding = internal::t_state.binding;
  return binding == nullptr ? 0 : binding->runtime;
}

}  // namespace dial9::runtime
