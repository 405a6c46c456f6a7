// See doctor_probe.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_probe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "analysis/census.h"
#include "base/unique_fd.h"
#include "cli/inputs.h"
#include "dial9/event.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "dial9/span.h"
#include "format/decoder.h"

namespace {
DIAL9_EVENT(DoctorEvent, (std::uint64_t, number), (std::uint32_t, round), (dial9::interned, text));
DIAL9_SPAN(DoctorSpan, "doctor", DIAL9_FIELDS((std::uint64_t, number)));
}  // namespace

namespace dial9::cli {
namespace {

constexpr std::uint32_t kRounds = 100;
constexpr std::uint64_t kEventsARound = 100;
// The first lines of the clock are the least exact; it is judged after they were corrected.
constexpr std::uint32_t kClockFromRound = 30;
constexpr std::chrono::nanoseconds kDeadline = std::chrono::seconds(5);

void wait_for(std::chrono::nanoseconds time) {
  timespec left{};
  left.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000);
  left.tv_nsec = static_cast<long>(time.count() % 1'000'000'000);
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// One reading between two of the kernel's: what lies outside them is an error of the clock's.
void read_clock(ClockFacts& facts, std::uint64_t& last_ns) {
  const std::uint64_t before = internal::kernel_now_ns();
  const std::uint64_t now = internal::now_ns();
  const std::uint64_t after = internal::kernel_now_ns();
  const std::uint64_t error = now < before ? before - now : now > after ? now - after : 0;
  facts.worst_error_ns = std::max(facts.worst_error_ns, error);
  if (now < last_ns) ++facts.backward_steps;
  last_ns = now;
  ++facts.readings;
}

void record_all(const ProbeOptions& options, ClockFacts& clock) {
  runtime::Place* place = runtime::intern_place("dial9 doctor", 12);
  const runtime::RuntimeId runtime = runtime::register_runtime("doctor");
  runtime::enter_worker(runtime);
  const runtime::TaskId task = runtime::task_spawn(*place, runtime);
  std::uint64_t last_ns = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    {
      runtime::task_ready(task);
      const runtime::PollScope poll(runtime, {task, place});
      span<DoctorSpan> work({round});
      for (std::uint64_t i = 0; i < kEventsARound; ++i) {
        record(DoctorEvent{round * kEventsARound + i, round, "doctor"});
        if (round >= kClockFromRound) read_clock(clock, last_ns);
      }
    }
    runtime::park();
    wait_for(options.length / kRounds);
    runtime::unpark();
  }
  runtime::task_terminate(task, runtime);
}

// Takes the recorder's own lock a second time.
LockFacts try_lock(const std::string& run_directory) {
  LockFacts facts;
  const std::string path = run_directory + "/.lock";
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) {
    facts.error = "can't open " + path + ": " + std::strerror(errno);
  } else {
    facts.is_exclusive = ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  return facts;
}

std::string read_directory(const std::string& directory, analysis::Census& census) {
  const auto inputs = expand_inputs({directory});
  if (!inputs) return inputs.error().message;
  Progress progress("reading", *inputs);
  for (const Input& input : *inputs) {
    std::uint64_t events = 0;
    const Result<void> read = decode_input(
        input, census.visitor(),
        [&](const format::Decoder& decoder) { census.begin_input(decoder); }, progress, events);
    if (!read) return input.name + ": " + read.error().message;
  }
  return {};
}

std::string read_memory(const std::vector<SegmentBytes>& segments, analysis::Census& census) {
  for (const SegmentBytes& segment : segments) {
    format::Decoder decoder(census.visitor());
    census.begin_input(decoder);
    Result<void> read = decoder.feed(segment.bytes);
    if (read) read = decoder.finish();
    if (!read) return "segment " + std::to_string(segment.index) + ": " + read.error().message;
  }
  return {};
}

std::uint64_t count_of(const analysis::Census& census, std::string_view prefix) {
  std::uint64_t count = 0;
  for (const auto& [name, events] : census.by_type()) {
    if (name.starts_with(prefix)) count += events;
  }
  return count;
}

void count_parts(const analysis::Census& census, bool has_usage, RecordingFacts& facts) {
  const auto part = [&](const char* name, const char* type, std::uint64_t expected,
                        bool is_minimum) {
    facts.parts.push_back({name, expected, count_of(census, type), is_minimum});
  };
  part("events", "DoctorEvent", kRounds * kEventsARound, false);
  part("poll starts", "PollStartEvent", kRounds, false);
  part("poll ends", "PollEndEvent", kRounds, false);
  part("wakes", "WakeEventEvent", kRounds, false);
  part("parks", "WorkerParkEvent", kRounds, false);
  part("unparks", "WorkerUnparkEvent", kRounds, false);
  part("tasks", "TaskSpawnEvent", 1, false);
  part("span enters", "SpanEnter:", kRounds, false);
  part("span exits", "SpanExit:", kRounds, false);
  part("runtime samples", "RuntimeMetricsEvent", 1, true);
  if (has_usage) part("usage samples", "ProcessResourceUsageEvent", 1, true);
  part("clock anchors", "ClockSyncEvent", 1, true);
  if (census.lost_events() > facts.dropped) facts.dropped = census.lost_events();
}

}  // namespace

ProbeFacts run_probe(const ProbeOptions& options) {
  ProbeFacts facts;
  const bool is_memory = options.recorder.directory.empty();
  facts.lock.is_memory = is_memory;
  RecorderOptions wanted = options.recorder;
  std::string said;
  wanted.on_message = [&said](const std::string& text) {
    said += said.empty() ? text : "; " + text;
  };
  const bool has_usage = options.usage_period.count() != 0;
  if (has_usage) {
    if (const Status added = add_process_usage(options.usage_period); !added)
      said = added.message();
  }
  auto [recorder, status] = Recorder::start(wanted);
  if (!status) {
    facts.recording.error = status.message();
    facts.clock.error = facts.lock.error = "the recorder didn't start";
    return facts;
  }
  facts.clock.is_tsc_asked_for = options.is_tsc_asked_for;
  const RecorderStatus first = recorder.status();
  facts.clock.description = first.clock;
  record_all(options, facts.clock);
  if (!is_memory) facts.lock = try_lock(first.directory);
  analysis::Census census;
  std::string unread;
  if (is_memory) {
    if (!recorder.rotate(kDeadline)) unread = "its segments were not sealed in time";
    if (unread.empty()) unread = read_memory(recorder.sealed_segments(), census);
  }
  const StopResult stopped = recorder.stop(kDeadline);
  facts.recording.unfinished = stopped.unfinished;
  facts.recording.dropped = stopped.events_dropped;
  if (!is_memory) unread = read_directory(first.directory, census);
  if (!unread.empty()) {
    facts.recording.error = said.empty() ? unread : said + " (and read back: " + unread + ")";
  }
  count_parts(census, has_usage, facts.recording);
  return facts;
}

}  // namespace dial9::cli
