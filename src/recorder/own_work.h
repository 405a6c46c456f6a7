// Whether what the calling thread does now is the recorder's own work: a pass of the collector,
// without the host's callbacks in it. Strongest property: one word of the thread's, written and
// read by it alone, so that an allocator may ask. Spec: docs/spec/heap_samples.md, "Which
// allocations".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace dial9::internal {

extern __thread bool t_is_own_work __attribute__((tls_model("initial-exec")));

// Says so for a scope.
class WorkScope {
 public:
  explicit WorkScope(bool is_own) : before_(std::exchange(t_is_own_work, is_own)) {}
  ~WorkScope() { t_is_own_work = before_; }
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

 private:
  bool before_;
};

}  // namespace dial9::internal
