// What dial9/asio.h needs of the library, whichever Asio the program uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/runtime.h"

namespace dial9::asio::hooks {

// The runtime of an execution context, by its address; registered when it is new.
runtime::RuntimeId runtime_of_context(const void* context) noexcept;
void name_context(const void* context, const char* name) noexcept;
void forget_context(const void* context) noexcept;

// True where libc's waiting functions are ours (dial9_interpose), so that parks show by themselves.
bool has_interposer() noexcept;

// Counts work that waits in a queue from its making to its start or its end, whichever comes first.
class QueueToken {
 public:
  explicit QueueToken(runtime::RuntimeId runtime) noexcept : runtime_(runtime) {
    runtime::queue_pushed(runtime_);
  }
  QueueToken(QueueToken&& other) noexcept : runtime_(other.runtime_) { other.runtime_ = 0; }
  QueueToken& operator=(QueueToken&&) = delete;
  ~QueueToken() { pop(); }
  void pop() noexcept {
    if (runtime_ != 0) runtime::queue_popped(runtime_);
    runtime_ = 0;
  }

 private:
  runtime::RuntimeId runtime_;
};

// Ends a task when the last of its owners goes.
class TaskGuard {
 public:
  TaskGuard(runtime::TaskRef task, runtime::RuntimeId runtime) noexcept
      : task_(task), runtime_(runtime) {}
  TaskGuard(TaskGuard&& other) noexcept : task_(other.task_), runtime_(other.runtime_) {
    other.task_.id = 0;
  }
  TaskGuard& operator=(TaskGuard&& other) noexcept {
    if (this != &other) {
      end();
      task_ = other.task_;
      runtime_ = other.runtime_;
      other.task_.id = 0;
    }
    return *this;
  }
  ~TaskGuard() { end(); }
  runtime::TaskRef task() const noexcept { return task_; }

 private:
  void end() noexcept {
    if (task_.id != 0) runtime::task_terminate(task_.id, runtime_);
    task_.id = 0;
  }
  runtime::TaskRef task_;
  runtime::RuntimeId runtime_;
};

inline TaskGuard spawn(const char* name, runtime::RuntimeId runtime) noexcept {
  runtime::Place* place = runtime::intern_place(name, __builtin_strlen(name));
  return TaskGuard({runtime::task_spawn(*place, runtime), place}, runtime);
}

}  // namespace dial9::asio::hooks
