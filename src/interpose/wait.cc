// SPDX-License-Identifier: Apache-2.0
#include "interpose/wait.h"

// Referred to by whoever needs the interposed functions linked in; pulls in the other files.
namespace dial9::interpose {
extern const char files_anchor;
extern const char listeners_anchor;
extern const char locks_anchor;
extern const char waits_anchor;
}  // namespace dial9::interpose
extern "C" const char* const dial9_interpose_is_linked[];
const char* const dial9_interpose_is_linked[] = {&dial9::interpose::files_anchor,
                                                 &dial9::interpose::listeners_anchor,
                                                 &dial9::interpose::locks_anchor,
                                                 &dial9::interpose::waits_anchor};

namespace dial9::interpose {

constinit std::atomic<runtime::RuntimeId> g_auto_runtime{0};

void Wait::begin(runtime::Place& call, Kind kind) noexcept {
  if (runtime::is_in_poll()) {
    call_ = &call;
    start_ns_ = runtime::now_ns();
    state_ = State::kInPoll;
    return;
  }
  if (kind != Kind::kParks) return;
  const runtime::RuntimeId runtime = g_auto_runtime.load(std::memory_order_relaxed);
  if (runtime != 0 && runtime::current_runtime() == 0) runtime::enter_worker(runtime);
  if (runtime::park()) state_ = State::kParked;
}

void Wait::end() noexcept {
  const int saved_errno = errno;
  if (state_ == State::kParked) {
    runtime::unpark();
  } else {
    runtime::blocking_call(*call_, start_ns_, runtime::now_ns() - start_ns_);
  }
  errno = saved_errno;
}

}  // namespace dial9::interpose
