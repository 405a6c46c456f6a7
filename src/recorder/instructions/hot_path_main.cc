// Runs one operation of the hot path N times, for callgrind to count: hot_path CASE N. All of it
// stays within one chunk, so that two runs of different N differ by warm operations only.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dial9/event.h"
#include "dial9/internal/runtime_events.h"
#include "dial9/span.h"
#include "recorder/recorder_core.h"

namespace dial9 {
namespace {

DIAL9_EVENT(ThreeFields, (std::uint64_t, id), (std::uint32_t, size), (std::uint8_t, kind));
DIAL9_EVENT(WithName, (std::uint64_t, id), (interned, name));
DIAL9_SPAN(TwoFields, "two", DIAL9_FIELDS((std::uint64_t, a), (std::uint64_t, b)));

Symbol g_gold{"gold"};

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
};

int run(const char* name, std::uint64_t count) {
  internal::CoreSeams seams;
  seams.has_thread = false;
  Status status;
  const auto core = internal::RecorderCore::start(RecorderOptions::memory(std::uint64_t{4} << 20),
                                                  seams, &status);
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  for (const Case& candidate : kCases) {
    if (std::strcmp(candidate.name, name) != 0) continue;
    if (!candidate.is_enabled) core->disable();
    candidate.run(2);  // attaches the thread, writes schemas
    candidate.run(count);
    return core->status().events_dropped == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "no case '%s'\n", name);
  return 1;
}

}  // namespace
}  // namespace dial9

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return dial9::run(argv[1], std::strtoull(argv[2], nullptr, 10));
}
