// No descriptors for files that are opened while it lives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <system_error>

namespace dial9::testing {

// By the limit of the process, which comes back with its end: not for several threads at a time.
class NoDescriptors {
 public:
  NoDescriptors() {
    // UBSan looks at the type of an object with a pipe, the first time.
    (void)std::generic_category().message(0);
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
