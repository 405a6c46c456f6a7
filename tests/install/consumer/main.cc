// A service that takes dial9 from where its CMakeLists says, and records a thousand events.
// SPDX-License-Identifier: Apache-2.0
#include <dial9/event.h>
#include <dial9/recorder.h>
#include <dial9/span.h>

#include <cstdio>

DIAL9_EVENT(OrderPlaced, (std::uint64_t, order_id), (dial9::bytes_u64, size),
            (dial9::interned, tier));

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto [recorder, status] = dial9::Recorder::start(dial9::RecorderOptions::disk(argv[1]));
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  for (std::uint64_t i = 0; i < 1000; ++i) dial9::record(OrderPlaced{i, 4096, "gold"});
  const dial9::StopResult result = recorder.stop();
  return result.is_complete && result.events_dropped == 0 ? 0 : 1;
}
