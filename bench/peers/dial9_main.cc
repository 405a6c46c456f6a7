// Ours: the three-field event, on and off; a poll's start and end through the core seam; a span
// with two fields. Strongest property: holds what was emitted against what the recorder says it
// wrote and dropped, and fails if an event is in neither. Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#include <dial9/event.h>
#include <dial9/recorder.h>
#include <dial9/runtime.h>
#include <dial9/span.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "harness.h"

namespace {

DIAL9_EVENT(OrderPlaced, (std::uint64_t, order_id), (std::uint32_t, status),
            (std::uint64_t, latency_us));
DIAL9_SPAN(CheckoutSpan, "checkout",
           DIAL9_FIELDS((std::uint64_t, order_id), (std::uint64_t, amount)));

using namespace dial9_bench;

constexpr auto record_order = [](std::uint64_t i) { dial9::record(OrderPlaced{i, 200, i * 3}); };

constexpr auto record_span = [](std::uint64_t i) {
  const dial9::span<CheckoutSpan> span({i, i * 3});
};

// A poll of one task on a worker's thread: the first call on a thread makes it a worker.
class Poller {
 public:
  Poller(dial9::runtime::RuntimeId runtime, dial9::runtime::TaskRef task)
      : runtime_(runtime), task_(task) {}
  void operator()(std::uint64_t) {
    if (!is_worker_) {
      dial9::runtime::enter_worker(runtime_);
      is_worker_ = true;
    }
    const dial9::runtime::PollScope poll(runtime_, task_);
  }

 private:
  dial9::runtime::RuntimeId runtime_;
  dial9::runtime::TaskRef task_;
  bool is_worker_ = false;
};

// Runs one case in a recording of its own: an operation is `events_an_op` events, of which one that
// is dropped takes `events_a_drop` along, counted as one (a span without an enter has no exit).
template <class Op>
bool run_on(const char* name, const Options& options, std::uint32_t threads,
            std::uint32_t events_an_op, std::uint32_t events_a_drop, const Op& op) {
  auto [recorder, status] = dial9::Recorder::start(dial9::RecorderOptions::disk(options.directory));
  if (!status) {
    std::fprintf(stderr, "peers_dial9: %s\n", status.message().c_str());
    return false;
  }
  const Timing timing = measure(options, threads, op);
  const dial9::StopResult stopped = recorder.stop(std::chrono::seconds(5));
  const std::uint64_t emitted = timing.operations * events_an_op;
  // The recorder writes a few events of its own; it may not write fewer than were emitted.
  const std::uint64_t known = stopped.events_written + stopped.events_dropped * events_a_drop;
  if (!stopped.is_complete || known < emitted) {
    std::fprintf(stderr, "peers_dial9: %s: emitted %llu, written %llu, dropped %llu %s\n", name,
                 static_cast<unsigned long long>(emitted),
                 static_cast<unsigned long long>(stopped.events_written),
                 static_cast<unsigned long long>(stopped.events_dropped),
                 stopped.unfinished.c_str());
    return false;
  }
  report(name, threads, timing, static_cast<std::int64_t>(stopped.events_dropped));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const dial9::runtime::RuntimeId runtime = dial9::runtime::register_runtime("bench");
  static dial9::runtime::Place place{"dial9_main.cc:main"};
  const Poller poller(runtime, {dial9::runtime::new_task_id(), &place});
  bool is_good = true;
  for (const std::uint32_t threads : kThreadCounts) {
    report("event_off", threads, measure(options, threads, record_order), kNotCounted);
    is_good = is_good && run_on("event_on", options, threads, 1, 1, record_order);
    is_good = is_good && run_on("poll", options, threads, 2, 1, poller);
    is_good = is_good && run_on("span", options, threads, 2, 2, record_span);
  }
  return is_good ? 0 : 1;
}
