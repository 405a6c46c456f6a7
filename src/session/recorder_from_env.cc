// recorder_from_env(): the plan of environment.h, carried out.
// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include "base/descriptor_numbers.h"
#include "base/stderr_line.h"
#include "dial9/cpu_samples.h"
#include "dial9/crash.h"
#include "dial9/heap_samples.h"
#include "dial9/lock_stacks.h"
#include "dial9/off_cpu.h"
#include "dial9/recorder.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "recorder/runtime_host.h"
#include "session/environment.h"
#include "sources/module_table.h"

namespace dial9 {

// There only in a program that links dial9::heap.
[[gnu::weak]] Status add_heap_samples(const HeapSampleOptions& options) noexcept;
[[gnu::weak]] bool remove_heap_samples() noexcept;

namespace {

Status start_heap_samples(const internal::EnvironmentPlan& plan) {
  if (add_heap_samples == nullptr || remove_heap_samples == nullptr) {
    return Status::failure(
        "DIAL9_MEMORY_PROFILE_ENABLED: this program has no heap samples; link dial9::heap, or "
        "start it with LD_PRELOAD=libdial9_heap.so");
  }
  remove_heap_samples();
  return add_heap_samples(
      {.sample_rate_bytes = plan.heap_sample_rate_bytes, .tracks_live = plan.tracks_live_heap});
}

void add_periodic_sources(const internal::EnvironmentPlan& plan,
                          std::vector<std::string>& messages) {
  using Add = Status (*)(std::chrono::nanoseconds) noexcept;
  const struct {
    const char* name;
    std::chrono::nanoseconds period;
    Add add;
  } sources[] = {{"process_usage", plan.process_usage_period, add_process_usage},
                 {"platform_stalls", plan.platform_stalls_period, add_platform_stalls},
                 {"resources", plan.resources_period, add_resources},
                 {"accept_queues", plan.accept_queues_period, add_accept_queues}};
  for (const auto& source : sources) {
    if (source.period.count() == 0) continue;
    remove_source(source.name);  // of a recorder before; one that runs now misses nothing
    const Status added = source.add(source.period);
    if (!added) messages.push_back(added.message());
  }
}

// The recorder says why, once for all.
void leave_descriptors_to_the_host(internal::EnvironmentPlan& plan) {
  plan.platform_stalls_period = plan.resources_period = plan.accept_queues_period = {};
  plan.cpu_sample_hz = plan.off_cpu_hz = 0;
  plan.has_function_names = false;
}

EnvRecorder start_as(internal::EnvironmentPlan plan) {
  if (are_descriptors_few()) leave_descriptors_to_the_host(plan);
  EnvRecorder result;
  result.messages = plan.messages;
  if (plan.is_enabled) {
    internal::runtime_set_sched_wait_sample_rate(plan.sched_wait_sample_rate);
    if (!plan.runtime_name.empty()) internal::runtime_set_default_name(plan.runtime_name);
    add_periodic_sources(plan, result.messages);
    // For the stacks of every source, those of blocking calls too.
    if (!internal::require_module_table()) {
      result.messages.push_back("stacks can't be named later: too many sources");
    }
    if (plan.has_function_names) {
      const Status added = add_function_names();
      if (!added) result.messages.push_back(added.message());
    }
    RecorderOptions options = plan.options;
    if (plan.is_quiet) options.on_message = [](const std::string&) {};
    auto [recorder, status] = Recorder::start(options);
    result.recorder = std::move(recorder);
    result.status = std::move(status);
    if (!result.status) result.messages.push_back("not recording: " + result.status.message());
    if (result.status && plan.cpu_sample_hz != 0) {
      // Here, since it takes a signal: not for a recorder that doesn't run.
      remove_cpu_samples();
      const Status added = add_cpu_samples({.frequency_hz = plan.cpu_sample_hz,
                                            .signal = plan.cpu_signal,
                                            .backend = plan.cpu_backend});
      if (!added) result.messages.push_back(added.message());
    }
    if (result.status && plan.off_cpu_hz != 0) {
      remove_off_cpu_samples();
      const Status added =
          add_off_cpu_samples({.frequency_hz = plan.off_cpu_hz,
                               .has_switches = plan.has_off_cpu_switches,
                               .has_switch_stacks = plan.has_off_cpu_switch_stacks});
      if (!added) result.messages.push_back(added.message());
    }
    remove_lock_stacks();
    if (result.status && plan.has_lock_stacks) {
      const Status added = add_lock_stacks();
      if (!added) result.messages.push_back(added.message());
    }
    if (result.status && plan.heap_sample_rate_bytes != 0) {
      const Status added = start_heap_samples(plan);
      if (!added) result.messages.push_back(added.message());
    }
    if (result.status && plan.handles_crashes) {
      const Status installed = install_crash_handler();
      if (!installed) result.messages.push_back(installed.message());
    }
  }
  if (!plan.is_quiet) {
    for (const std::string& message : result.messages) {
      print_line(message);
    }
  }
  return result;
}

}  // namespace

EnvRecorder recorder_from_env() noexcept {
  try {
    return start_as(internal::plan_from(internal::dial9_variables()));
  } catch (const std::exception&) {
    EnvRecorder result;
    result.status = Status::failure("out of memory");
    return result;
  }
}

}  // namespace dial9
