// Code whose stacks are sampled at arbitrary instructions: what services spend their time in, most
// of it inside libraries that have no frame pointers. workloads.cc is compiled twice, with and
// without frame pointers of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace dial9::unwind::testing {

struct Workload {
  const char* name;
  void (*run)();  // some microseconds to a millisecond of work; never fails
};

namespace with_frame_pointers {
std::span<const Workload> workloads();
}
namespace without_frame_pointers {
std::span<const Workload> workloads();
}

}  // namespace dial9::unwind::testing
