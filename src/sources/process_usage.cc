// The source's life: registered once a process, sampled by the collector.
// SPDX-License-Identifier: Apache-2.0
#include "sources/process_usage.h"

#include <unistd.h>

#include <exception>
#include <memory>

#include "dial9/runtime.h"
#include "dial9/source.h"
#include "recorder/process_registry.h"

namespace dial9 {

Status add_process_usage(std::chrono::nanoseconds period) noexcept {
  try {
    if (!internal::is_process_usage_supported()) {
      return Status::failure("process usage: this platform doesn't tell");
    }
    // The child of a fork starts anew: its parent may have been in the middle of a sample.
    struct State {
      pid_t owner = 0;
      std::unique_ptr<internal::ProcessUsageReader> reader;
    };
    auto state = std::make_shared<State>();
    return internal::add_paced_source(
        "process_usage", period, internal::SourcePace::kWhileBusy, [state] {
          const pid_t self = ::getpid();
          if (state->owner != self) {
            (void)state->reader.release();
            state->reader = std::make_unique<internal::ProcessUsageReader>();
            state->owner = self;
          }
          internal::ProcessResourceUsageEvent usage;
          if (state->reader->read(runtime::now_ns(), &usage)) record(usage);
        });
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
