// No descriptors for files that are opened while it lives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

namespace dial9::testing {

// By the limit of the process, which comes back with its end: not for several threads at a time.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace dial9::testing
