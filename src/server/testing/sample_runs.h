// Traces and runs in memory for the tests of this folder. Every number in them is stated here, so
// that tests can name what they expect.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/router.h"
#include "server/run.h"
#include "server/run_source.h"

namespace dial9::server::testing {

using Bytes = std::vector<std::uint8_t>;

// Starts at monotonic 1,000,000,000. Worker 0 polls task 7 nine times, each 1 ms, from t = 10, 20
// … 90 ms on, each woken by task 8 half a millisecond before; worker 1 polls task 8 once from t =
// 20 ms for 50 ms. Worker 1 parks at 75 ms, unparks at 95 ms after 4 ms of kernel wait. Task 7
// spawns at t = 0 at "main.cc:7" and ends at 99 ms. Three events "OrderPlaced" {amount, note} at
// 5, 6 and 90 ms with amounts 1, 2.5 and none. 12 events of loss "ring full" from 40 to 45 ms.
// Queue depth of "main" 0 at t = 0, 5 at 30 ms. One anchor: t = 0 is kOriginRealtimeNs. A span
// "checkout" from 10 to 60 ms.
Bytes sample_trace();
inline constexpr std::uint64_t kOriginNs = 1'000'000'000;
inline constexpr std::uint64_t kOriginRealtimeNs = 1'750'000'000'000'000'000;

// `polls` polls of 1 µs each on one worker, 2 µs apart, each of its own task.
Bytes dense_trace(std::uint32_t polls);

// One task on two workers at once: on worker 0 from 10 to 90 ms, on worker 1 from 0 to 1 ms, from
// 20 to 21 ms and from 55 to 56 ms.
Bytes overlapping_trace();

// Only custom events: `count` of type "Tick" {n}, 1 ms apart.
Bytes custom_only_trace(std::uint32_t count);

std::unique_ptr<Run> load_run(const Bytes& bytes, std::uint64_t generation = 1);

// Runs that lie in memory. read() can be held up, to catch a load in the middle.
class MemoryRuns final : public RunSource {
 public:
  void add(const std::string& id, Bytes bytes);
  // Makes reading `id` fail with this message.
  void break_run(const std::string& id, std::string message) { broken_[id] = std::move(message); }
  // Called before each chunk of 1,000 bytes; from the loading thread.
  std::function<void()> before_chunk;

  std::string root() const override { return "memory"; }
  Result<std::vector<RunInfo>> list() override;
  Result<void> read(const RunInfo& run, std::size_t file,
                    const std::function<bool(std::span<const std::uint8_t>)>& take) override;

 private:
  std::map<std::string, Bytes> runs_;
  std::map<std::string, std::string> broken_;
};

}  // namespace dial9::server::testing
