// One table of variables, one parser a kind of value: see environment.h.
// SPDX-License-Identifier: Apache-2.0
#include "session/environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

extern char** environ;

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::optional<bool> to_bool(std::string_view text) {
  const std::string value = lower(text);
  for (const char* yes : {"t", "true", "1", "y", "yes", "on"}) {
    if (value == yes) return true;
  }
  for (const char* no : {"f", "false", "0", "n", "no", "off"}) {
    if (value == no) return false;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> to_number(std::string_view text, std::uint64_t least,
                                       std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> to_decimal(std::string_view text, double most) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most)) {
    return std::nullopt;
  }
  return value;
}

// Collects what was said about one set of variables.
class Reader {
 public:
  Reader(const Variables& variables, EnvironmentPlan& plan) : variables_(variables), plan_(plan) {}

  // Each notes the name as known, and leaves `out` alone if the variable is missing or not
  // understood.
  bool flag(const char* name, bool* out) {
    return read(name, "a boolean (t true 1 y yes on, f false 0 n no off)", out, to_bool);
  }
  bool number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t* out) {
    const std::string wanted =
        "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    return read(name, wanted, out,
                [&](std::string_view text) { return to_number(text, least, most); });
  }
  bool decimal(const char* name, double most, double* out) {
    const std::string wanted =
        "a number from 0 to " + std::to_string(static_cast<std::uint64_t>(most)) + ", such as 2.5";
    return read(name, wanted, out, [&](std::string_view text) { return to_decimal(text, most); });
  }
  bool text(const char* name, std::string* out) {
    return read(name, "text that isn't empty", out, [](std::string_view value) {
      return value.empty() ? std::nullopt : std::optional<std::string>(value);
    });
  }

  // A feature that events.md has and this version hasn't: silent if it is off or unset.
  void unbuilt_flag(const char* name, const char* feature) {
    bool is_on = false;
    if (flag(name, &is_on) && is_on) unbuilt(name, feature);
  }
  void unbuilt_value(const char* name, const char* feature) {
    known_.emplace_back(name);
    if (find(name) != nullptr) unbuilt(name, feature);
  }

  void unbuilt(const char* name, const char* feature) {
    plan_.messages.push_back(std::string(name) + ": " + feature +
                             " was asked for, but is not built into this version");
  }

  void report_unknown() {
    for (const auto& [name, value] : variables_) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        plan_.messages.push_back(name + ": there is no such variable; it has no effect");
      }
    }
  }

 private:
  const std::string* find(std::string_view name) const {
    for (const auto& [candidate, value] : variables_) {
      if (candidate == name) return &value;
    }
    return nullptr;
  }

  template <class T, class Parse>
  bool read(const char* name, const std::string& wanted, T* out, Parse parse) {
    known_.emplace_back(name);
    const std::string* value = find(name);
    if (value == nullptr) return false;
    const auto parsed = parse(*value);
    if (!parsed) {
      plan_.messages.push_back(std::string(name) + "='" + *value +
                               "' is not understood: it must be " + wanted +
                               "; it counts as missing");
      return false;
    }
    *out = *parsed;
    return true;
  }

  const Variables& variables_;
  EnvironmentPlan& plan_;
  std::vector<std::string> known_;
};

void read_storage(Reader& reader, EnvironmentPlan& plan) {
  RecorderOptions& options = plan.options;
  options.directory = "/tmp/dial9-traces";
  plan.has_directory = reader.text("DIAL9_TRACE_DIR", &options.directory);
  std::uint64_t seconds = 60;
  reader.number("DIAL9_ROTATION_SECS", 1, 7 * 24 * 3600, &seconds);
  options.rotation_period = std::chrono::seconds(seconds);
  std::uint64_t total_mb = 1024;
  reader.number("DIAL9_MAX_DISK_USAGE_MB", 1, std::uint64_t{1} << 30, &total_mb);
  options.budget_bytes = total_mb * kMiB;
  std::uint64_t file_mb = 0;
  // Half the budget is the most that a segment may take: one is written while another is kept.
  reader.number("DIAL9_MAX_FILE_SIZE_MB", 1, std::max<std::uint64_t>(total_mb / 2, 1), &file_mb);
  options.segment_bytes = std::min(file_mb * kMiB, options.budget_bytes / 2);
  reader.flag("DIAL9_GC_DEAD_NAMESPACES", &options.removes_dead_runs);
  reader.text("DIAL9_SERVICE_NAME", &options.service_name);
}

// Ours: what a builder can set and the ecosystem has no variable for.
void read_own(Reader& reader, EnvironmentPlan& plan) {
  RecorderOptions& options = plan.options;
  bool is_memory = false;
  reader.flag("DIAL9_MEMORY_RING", &is_memory);
  if (is_memory && plan.has_directory) {
    plan.messages.push_back("DIAL9_TRACE_DIR has no effect beside DIAL9_MEMORY_RING");
  }
  if (is_memory) options.directory.clear();
  reader.flag("DIAL9_ANONYMOUS_MEMORY", &options.uses_anonymous_memory);
  std::uint64_t kib = options.thread_bytes / 1024;
  reader.number("DIAL9_THREAD_BUFFER_KB", 16, 1 << 20, &kib);
  options.thread_bytes = static_cast<std::uint32_t>(kib * 1024);
  std::uint64_t arena_mb = options.arena_bytes / kMiB;
  reader.number("DIAL9_ARENA_MB", 1, 16384, &arena_mb);
  options.arena_bytes = arena_mb * kMiB;
  reader.decimal("DIAL9_MAX_CPU_PERCENT", 100'000, &options.max_cpu_percent);
  reader.decimal("DIAL9_MAX_MB_PER_SEC", 1'000'000, &options.max_mb_per_sec);
  std::string clock;
  if (reader.text("DIAL9_CLOCK", &clock)) {
    if (clock == "tsc") options.clock = ClockChoice::kTsc;
    if (clock == "kernel") options.clock = ClockChoice::kKernel;
    if (clock != "tsc" && clock != "kernel" && clock != "auto") {
      plan.messages.push_back(
          "DIAL9_CLOCK='" + clock +
          "' is not understood: it must be auto, tsc or kernel; it counts as missing");
    }
  }
  reader.flag("DIAL9_CRASH_HANDLER", &plan.handles_crashes);
  reader.flag("DIAL9_QUIET", &plan.is_quiet);
}

void read_cpu_samples(Reader& reader, EnvironmentPlan& plan) {
  bool has_cpu_samples = true;
  reader.flag("DIAL9_CPU_PROFILE_ENABLED", &has_cpu_samples);
  std::uint64_t hz = 99;
  reader.number("DIAL9_CPU_SAMPLE_HZ", 1, 1'000, &hz);
  if (has_cpu_samples) plan.cpu_sample_hz = static_cast<std::uint32_t>(hz);
  std::uint64_t signal = 0;
  reader.number("DIAL9_CPU_SIGNAL", 1, 64, &signal);
  plan.cpu_signal = static_cast<int>(signal);
  std::string backend;
  if (reader.text("DIAL9_CPU_BACKEND", &backend)) {
    if (backend == "timers") plan.cpu_backend = CpuSampleBackend::kTimers;
    if (backend == "perf") plan.cpu_backend = CpuSampleBackend::kPerf;
    if (backend != "timers" && backend != "perf" && backend != "auto") {
      plan.messages.push_back(
          "DIAL9_CPU_BACKEND='" + backend +
          "' is not understood: it must be auto, timers or perf; it counts as missing");
    }
  }
  bool forces_timers = false;
  reader.flag("DIAL9_FORCE_CTIMER", &forces_timers);
  if (!forces_timers) return;
  if (plan.cpu_backend == CpuSampleBackend::kPerf) {
    plan.messages.push_back("DIAL9_CPU_BACKEND=perf has no effect beside DIAL9_FORCE_CTIMER");
  }
  plan.cpu_backend = CpuSampleBackend::kTimers;
}

void read_sources(Reader& reader, EnvironmentPlan& plan) {
  bool has_usage = true;
  reader.flag("DIAL9_PROCESS_RESOURCE_USAGE_ENABLED", &has_usage);
  std::uint64_t usage_ms = 100;
  reader.number("DIAL9_PROCESS_RESOURCE_USAGE_SAMPLE_INTERVAL_MS", 1, 3'600'000, &usage_ms);
  if (has_usage) plan.process_usage_period = std::chrono::milliseconds(usage_ms);
  bool has_stalls = true;
  reader.flag("DIAL9_PLATFORM_STALLS_ENABLED", &has_stalls);
  std::uint64_t stalls_ms = 100;
  reader.number("DIAL9_PLATFORM_STALLS_SAMPLE_INTERVAL_MS", 1, 3'600'000, &stalls_ms);
  if (has_stalls) plan.platform_stalls_period = std::chrono::milliseconds(stalls_ms);
  bool has_resources = true;
  reader.flag("DIAL9_RESOURCES_ENABLED", &has_resources);
  std::uint64_t resources_ms = 1'000;
  reader.number("DIAL9_RESOURCES_SAMPLE_INTERVAL_MS", 10, 3'600'000, &resources_ms);
  if (has_resources) plan.resources_period = std::chrono::milliseconds(resources_ms);
  bool has_queues = false;
  reader.flag("DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED", &has_queues);
  std::uint64_t queues_ms = 400;
  reader.number("DIAL9_SOCKET_ACCEPT_QUEUES_SAMPLE_INTERVAL_MS", 1, 3'600'000, &queues_ms);
  if (has_queues) plan.accept_queues_period = std::chrono::milliseconds(queues_ms);
  read_cpu_samples(reader, plan);
  bool has_off_cpu_samples = true;
  reader.flag("DIAL9_SCHEDULE_PROFILE_ENABLED", &has_off_cpu_samples);
  std::uint64_t off_cpu_hz = 50;
  reader.number("DIAL9_OFF_CPU_SAMPLE_HZ", 20, 100, &off_cpu_hz);
  if (has_off_cpu_samples) plan.off_cpu_hz = static_cast<std::uint32_t>(off_cpu_hz);
  reader.flag("DIAL9_OFF_CPU_SWITCHES", &plan.has_off_cpu_switches);
  reader.flag("DIAL9_OFF_CPU_SWITCH_STACKS", &plan.has_off_cpu_switch_stacks);
  reader.flag("DIAL9_LOCK_STACKS_ENABLED", &plan.has_lock_stacks);
  reader.flag("DIAL9_FUNCTION_NAMES_ENABLED", &plan.has_function_names);
  std::uint64_t rate = plan.sched_wait_sample_rate;
  reader.number("DIAL9_SCHED_WAIT_SAMPLE_RATE", 1, 1'000'000, &rate);
  plan.sched_wait_sample_rate = static_cast<std::uint32_t>(rate);
  bool tracks_tasks = true;
  reader.flag("DIAL9_TASK_TRACKING_ENABLED", &tracks_tasks);
  if (!tracks_tasks) {
    plan.messages.push_back(
        "DIAL9_TASK_TRACKING_ENABLED=false has no effect: whether tasks are tracked is decided by "
        "what a program links; link dial9::asio instead of dial9::asio_tracking, or set "
        "DIAL9_ENABLED=false to record nothing");
  }
  reader.text("DIAL9_RUNTIME_NAME", &plan.runtime_name);
}

void read_heap(Reader& reader, EnvironmentPlan& plan) {
  bool is_on = false;
  reader.flag("DIAL9_MEMORY_PROFILE_ENABLED", &is_on);
  std::uint64_t rate_bytes = 512 * 1024;
  const bool has_rate =
      reader.number("DIAL9_MEMORY_SAMPLE_RATE_BYTES", 1, std::uint64_t{1} << 40, &rate_bytes);
  const bool has_live = reader.flag("DIAL9_MEMORY_TRACK_LIVESET", &plan.tracks_live_heap);
  if (is_on) plan.heap_sample_rate_bytes = rate_bytes;
  if (!is_on && (has_rate || has_live)) {
    plan.messages.push_back(
        std::string(has_rate ? "DIAL9_MEMORY_SAMPLE_RATE_BYTES" : "DIAL9_MEMORY_TRACK_LIVESET") +
        " has no effect without DIAL9_MEMORY_PROFILE_ENABLED");
  }
}

// In events.md, not in this version. Those that are on by default are reported only where asked
// for.
void read_unbuilt(Reader& reader) {
  reader.unbuilt_value("DIAL9_S3_BUCKET", "uploading to S3");
  reader.unbuilt_value("DIAL9_S3_PREFIX", "uploading to S3");
  reader.unbuilt_flag("DIAL9_TASK_DUMP_ENABLED", "dumping of task stacks");
  reader.unbuilt_value("DIAL9_TASK_DUMP_IDLE_THRESHOLD_MS", "dumping of task stacks");
}

}  // namespace

Variables dial9_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (text.starts_with("DIAL9_") && equals != std::string_view::npos) {
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

EnvironmentPlan plan_from(const Variables& variables) {
  EnvironmentPlan plan;
  Reader reader(variables, plan);
  reader.flag("DIAL9_ENABLED", &plan.is_enabled);
  read_storage(reader, plan);
  read_own(reader, plan);
  read_sources(reader, plan);
  read_heap(reader, plan);
  read_unbuilt(reader);
  reader.report_unknown();
  return plan;
}

}  // namespace dial9::internal
