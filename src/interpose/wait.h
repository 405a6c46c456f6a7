// What every interposed function is made of: the real function, found at first use, and a Wait
// around the call. Strongest property: the call behaves as without us: errno, return value,
// cancellation and exceptions pass through, and outside a worker's park or poll it costs a load and
// a branch. Spec: docs/spec/events_ours.md, "Blocking calls".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cerrno>

#include <dlfcn.h>

#include "dial9/event.h"
#include "dial9/runtime.h"

namespace dial9::interpose {

// The next definition of a function, normally libc's, else that of a library which interposes it
// too (a sanitizer). Looked up when our object is loaded (DIAL9_FIND_AT_LOAD), since dlsym isn't
// for signal handlers; in a constructor that runs before that, at its first use. `version`: the one
// that is meant, for names of which libc has several.
template <class Function>
class Real {
 public:
  constexpr explicit Real(const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}

  // Null only in a program without a dynamic linker.
  Function get() noexcept {
    Function found = known();
    return __builtin_expect(found != nullptr, 1) ? found : find();
  }
  // Null: not asked for yet.
  Function known() const noexcept { return found_.load(std::memory_order_relaxed); }

 private:
  [[gnu::cold, gnu::noinline]] Function find() noexcept {
    const int saved_errno = errno;
    void* symbol = dlsym(RTLD_NEXT, name_);
    if (version_ != nullptr) {
      // Another interposer has no versions: one that stands before libc is found by the name alone.
      void* const exact = dlvsym(RTLD_NEXT, name_, version_);
      if (exact != nullptr && (symbol == nullptr || is_same_object(exact, symbol))) symbol = exact;
    }
    const auto found = reinterpret_cast<Function>(symbol);
    found_.store(found, std::memory_order_relaxed);
    errno = saved_errno;
    return found;
  }

  static bool is_same_object(const void* a, const void* b) noexcept {
    Dl_info of_a{};
    Dl_info of_b{};
    return dladdr(a, &of_a) != 0 && dladdr(b, &of_b) != 0 && of_a.dli_fbase == of_b.dli_fbase;
  }

  std::atomic<Function> found_{nullptr};
  const char* name_;
  const char* version_;
};

// Where 0 isn't a runtime: threads that wait become workers of it by themselves (the preloaded
// library).
extern std::atomic<runtime::RuntimeId> g_auto_runtime;

// A call that may wait. Inside a poll it becomes a BlockingCallEvent if it was long; outside one, a
// worker's park if it is of the kind that workers wait in.
class Wait {
 public:
  enum class Kind { kBlocks, kParks };

  Wait(runtime::Place& call, Kind kind) noexcept {
    if (__builtin_expect(is_recording(), 0)) begin(call, kind);
  }
  ~Wait() {
    if (__builtin_expect(state_ != State::kNothing, 0)) end();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  enum class State { kNothing, kInPoll, kParked };

  void begin(runtime::Place& call, Kind kind) noexcept;
  void end() noexcept;

  State state_ = State::kNothing;
  runtime::Place* call_ = nullptr;
  std::uint64_t start_ns_ = 0;
};

}  // namespace dial9::interpose

// `real_NAME`, in this namespace: looked up before main. Among the first of the object's own
// constructors.
#define DIAL9_FIND_AT_LOAD(version, name, ...)                                              \
  namespace dial9::interpose {                                                              \
  static constinit Real<__VA_ARGS__> real_##name(#name, version);                           \
  [[gnu::constructor(101)]] static void find_##name() noexcept { (void)real_##name.get(); } \
  }

// Defines libc's function `name` with a Wait around the real one; `failure` is returned where there
// is none (a static program).
#define DIAL9_INTERPOSE(kind, failure, version, result, name, parameters, arguments)  \
  DIAL9_FIND_AT_LOAD(version, name, result(*) parameters)                             \
  extern "C" __attribute__((visibility("default"))) result name parameters {          \
    static constinit ::dial9::runtime::Place place{#name};                            \
    const auto function = ::dial9::interpose::real_##name.get();                      \
    if (function == nullptr) {                                                        \
      errno = ENOSYS;                                                                 \
      return failure;                                                                 \
    }                                                                                 \
    const ::dial9::interpose::Wait wait(place, ::dial9::interpose::Wait::Kind::kind); \
    return function arguments;                                                        \
  }
