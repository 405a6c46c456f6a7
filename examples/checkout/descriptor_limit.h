// The process's limit of open descriptors, for programs with thousands of connections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace checkout {

// Raises the soft limit of open descriptors to the hard one and returns what holds now; leaves it
// as it was where that isn't allowed.
inline std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return limit.rlim_cur;
}

}  // namespace checkout
