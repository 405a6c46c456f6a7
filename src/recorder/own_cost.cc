// See own_cost.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/own_cost.h"

#include <time.h>

#include <algorithm>
#include <memory>

#include "dial9/internal/runtime_events.h"
#include "recorder/arena.h"
#include "recorder/recording_state.h"
#include "recorder/shedding.h"

namespace dial9::internal {
namespace {

constexpr int kRounds = 8;
constexpr int kEventsARound = 64;  // all rounds fit into the scratch chunk

struct Scratch {
  ChunkControl control;
  ChunkTables tables;
  std::uint8_t stream[kChunkStreamBytes];
};

// The thread's buffer points into the scratch while this lives.
class ScratchBuffer {
 public:
  explicit ScratchBuffer(Scratch& scratch) : before_(t_buffer) {
    t_buffer = ThreadBuffer{};
    t_buffer.ready_epoch = kEpoch;
    t_buffer.begin = scratch.stream;
    t_buffer.end = scratch.stream + kChunkStreamBytes;
    t_buffer.control = &scratch.control;
    t_buffer.tables = &scratch.tables;
    t_buffer.clock = current_clock();
    t_buffer.set_short_way();
    t_buffer.tid = before_.tid;
    t_buffer.process = before_.process;
  }
  ~ScratchBuffer() { t_buffer = before_; }
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;

  static constexpr std::uint32_t kEpoch = 1;

 private:
  ThreadBuffer before_;
};

template <class Operation>
double best_ns(Operation operation) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t start = kernel_now_ns();
    for (int i = 0; i < kEventsARound; ++i) operation(static_cast<std::uint64_t>(i));
    best = std::min(best, static_cast<double>(kernel_now_ns() - start) / kEventsARound);
  }
  return best;
}

}  // namespace

ProducerCosts calibrate_producer_costs() {
  // A fixed type id: none is given out.
  using Event = WakeEventEvent;
  const auto scratch = std::make_unique<Scratch>();
  ProducerCosts costs;
  {
    const ScratchBuffer buffer(*scratch);
    costs.event_ns =
        best_ns([](std::uint64_t i) { write_event(ScratchBuffer::kEpoch, Event{i, i + 1, 255}); });
  }
  const ShedScratch shed;
  costs.shed_ns = best_ns([](std::uint64_t) { (void)keeps_unit(ShedClass::kEvents, 0); });
  return costs;
}

std::uint64_t thread_cpu_now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace dial9::internal
