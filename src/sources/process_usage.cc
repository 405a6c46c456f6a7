// The source's life: registered once a process, sampled by the collector.
// SPDX-License-Identifier: Apache-2.0
#include "sources/process_usage.h"

#include <exception>

#include "dial9/source.h"
#include "recorder/process_registry.h"

namespace dial9 {
namespace {

void sample() {
  internal::ProcessResourceUsageEvent usage;
  if (internal::read_process_usage(&usage)) record(usage);
}

}  // namespace

Status add_process_usage(std::chrono::nanoseconds period) noexcept {
  try {
    if (!internal::is_process_usage_supported()) {
      return Status::failure("process usage: this platform doesn't tell");
    }
    return internal::add_paced_source("process_usage", period, internal::SourcePace::kWhileBusy,
                                      sample);
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
