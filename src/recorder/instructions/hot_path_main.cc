// Runs one operation of the hot path N times, for callgrind to count: hot_path CASE N. All of it
// stays within one chunk, so that two runs of different N differ by warm operations only. Says on
// stderr what memory is the thread's own, and stores to g_mark around the warm operations, for
// check_lines.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dial9/event.h"
#include "dial9/internal/runtime_events.h"
#include "dial9/span.h"
#include "recorder/recorder_core.h"
#include "recorder/runtime_state.h"

namespace dial9 {
namespace {

DIAL9_EVENT(ThreeFields, (std::uint64_t, id), (std::uint32_t, size), (std::uint8_t, kind));
DIAL9_EVENT(WithName, (std::uint64_t, id), (interned, name));
DIAL9_SPAN(TwoFields, "two", DIAL9_FIELDS((std::uint64_t, a), (std::uint64_t, b)));

Symbol g_gold{"gold"};
alignas(64) volatile std::uint64_t g_mark = 0;

runtime::RuntimeId hot_runtime() {
  static const runtime::RuntimeId id = runtime::register_runtime("hot");
  return id;
}

// The loop's variable goes through here, so that nothing of an operation is hoisted out of the
// loop.
std::uint64_t hidden(std::uint64_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

struct Case {
  const char* name;
  bool is_enabled;
  void (*run)(std::uint64_t count);
  ClockChoice clock = ClockChoice::kAuto;
};

const Case kCases[] = {
    {"event_off", false,
     [](std::uint64_t count) {
       for (; count > 0; --count) record(ThreeFields{hidden(17), 5, 3});
     }},
    {"event_three_fields", true,
     [](std::uint64_t count) {
       for (; count > 0; --count) record(ThreeFields{hidden(17), 5, 3});
     }},
    {"event_shared_stamp", true,
     [](std::uint64_t count) {
       const std::uint64_t stamp = internal::now_ns();
       for (; count > 0; --count) internal::record_at(ThreeFields{hidden(17), 5, 3}, stamp);
     }},
    // The general way: where the clock isn't the counter, every event takes it.
    {"event_kernel_clock", true,
     [](std::uint64_t count) {
       for (; count > 0; --count) record(ThreeFields{hidden(17), 5, 3});
     },
     ClockChoice::kKernel},
    {"event_symbol", true,
     [](std::uint64_t count) {
       for (; count > 0; --count) record(WithName{hidden(17), g_gold});
     }},
    {"event_interned_text", true,
     [](std::uint64_t count) {
       for (; count > 0; --count) record(WithName{hidden(17), "gold"});
     }},
    {"span", true,
     [](std::uint64_t count) {
       for (; count > 0; --count) const span<TwoFields> scope({hidden(17), 5});
     }},
    {"span_in_task", true,
     [](std::uint64_t count) {
       const runtime::PollScope poll(hot_runtime(), {runtime::new_task_id(), &g_gold});
       for (; count > 0; --count) const span<TwoFields> scope({hidden(17), 5});
     }},
    {"poll", true,  // with its wake
     [](std::uint64_t count) {
       const runtime::TaskId task = runtime::new_task_id();
       for (; count > 0; --count) {
         runtime::task_ready(task);
         const runtime::PollScope poll(hot_runtime(), {task, &g_gold});
       }
     }},
};

void print_own(const char* what, const void* from, std::size_t bytes) {
  std::fprintf(stderr, "own %zx %zx %s\n", reinterpret_cast<std::uintptr_t>(from),
               reinterpret_cast<std::uintptr_t>(from) + bytes, what);
}

// Memory that no other thread writes while this one records.
void print_own_memory() {
  constexpr std::size_t kStack = 64 << 10;
  constexpr std::size_t kThreadLocals = 8 << 10;
  print_own("stack", static_cast<char*>(__builtin_frame_address(0)) - kStack, kStack + 4096);
  print_own("thread_locals", static_cast<char*>(__builtin_thread_pointer()) - kThreadLocals,
            kThreadLocals);
  const internal::ThreadBuffer& buffer = internal::t_buffer;
  if (buffer.control != nullptr) {
    print_own("chunk", buffer.begin, static_cast<std::size_t>(buffer.end - buffer.begin));
    print_own("chunk_tables", buffer.tables, sizeof *buffer.tables);
    print_own("producer_line", &buffer.control->producer, sizeof buffer.control->producer);
  }
  if (internal::t_state.binding != nullptr) {
    print_own("counters", internal::t_state.binding, sizeof *internal::t_state.binding);
  }
  std::fprintf(stderr, "mark %zx\n", reinterpret_cast<std::uintptr_t>(&g_mark));
}

const Case* find_case(const char* name) {
  for (const Case& candidate : kCases) {
    if (std::strcmp(candidate.name, name) == 0) return &candidate;
  }
  return nullptr;
}

int run(const char* name, std::uint64_t count) {
  const Case* chosen = find_case(name);
  if (chosen == nullptr) {
    std::fprintf(stderr, "no case '%s'\n", name);
    return 1;
  }
  internal::CoreSeams seams;
  seams.has_thread = false;
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{4} << 20);
  options.clock = chosen->clock;
  Status status;
  const auto core = internal::RecorderCore::start(options, seams, &status);
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  if (!chosen->is_enabled) core->disable();
  chosen->run(2);  // attaches the thread, writes schemas
  print_own_memory();
  g_mark = 1;
  chosen->run(count);
  g_mark = 2;
  return core->status().events_dropped == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dial9

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return dial9::run(argv[1], std::strtoull(argv[2], nullptr, 10));
}
