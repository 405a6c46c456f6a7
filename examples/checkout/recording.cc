// From the service's options to a dial9::Recorder.
// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include <dial9/cpu_samples.h>
#include <dial9/lock_stacks.h>
#include <dial9/off_cpu.h>
#include <dial9/source.h>

#include <cstdio>
#include <utility>

namespace checkout {
namespace {

constexpr std::uint64_t kDiskBudgetBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMemoryBudgetBytes = std::uint64_t{32} << 20;

void report(const char* source, const dial9::Status& status) {
  if (!status) std::fprintf(stderr, "checkout: no %s: %s\n", source, status.message().c_str());
}

}  // namespace

Recording::Recording(const Options& options) {
  if (options.trace_dir.empty() && !options.is_memory_ring) {
    recorder_ = dial9::recorder_from_env().recorder;
    return;
  }
  auto recorder_options = options.is_memory_ring
                              ? dial9::RecorderOptions::memory(kMemoryBudgetBytes)
                              : dial9::RecorderOptions::disk(options.trace_dir);
  if (!options.is_memory_ring) recorder_options.budget_bytes = kDiskBudgetBytes;
  recorder_options.rotation_period = std::chrono::milliseconds(options.rotation_ms);
  recorder_options.service_name = "checkout";
  auto [recorder, status] = dial9::Recorder::start(recorder_options);
  recorder_ = std::move(recorder);
  if (!status) {
    std::fprintf(stderr, "checkout: not recording: %s\n", status.message().c_str());
    return;
  }
  if (!options.has_all_sources) return;
  report("resource usage", dial9::add_process_usage());
  report("accept queues", dial9::add_accept_queues());
  report("platform stalls", dial9::add_platform_stalls());
  report("resources", dial9::add_resources());
  report("CPU samples", dial9::add_cpu_samples());
  report("off-CPU samples", dial9::add_off_cpu_samples());
  report("stacks of lock waits", dial9::add_lock_stacks());
  report("function names", dial9::add_function_names());
}

bool Recording::dump(const std::string& path) {
  recorder_.rotate();
  const dial9::Status status = recorder_.dump(path);
  if (!status) std::fprintf(stderr, "checkout: no dump: %s\n", status.message().c_str());
  return status.ok();
}

void Recording::stop() {
  if (!recorder_.is_running()) return;
  const dial9::StopResult result = recorder_.stop();
  std::fputs(("checkout: " + result.report()).c_str(), stderr);
}

}  // namespace checkout
