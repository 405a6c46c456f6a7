// A process for the survival tests: 8 threads that record numbered events until it ends in the way
// that it was told to, by itself or by its parent's hand. How far each thread came is in a shared
// file that outlives it.
//
//   recording_child DIRECTORY COUNTERS END DELAY_US SEED
//
// END: wait (for the parent's kill), segv, abort, exit, oom, stop (an orderly one).
// SPDX-License-Identifier: Apache-2.0
#include <dial9/event.h>
#include <dial9/recorder.h>
#include <dial9/runtime.h>
#include <dial9/span.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "counters.h"

DIAL9_EVENT(Numbered, (std::uint64_t, thread), (std::uint64_t, number), (dial9::interned, name));
DIAL9_SPAN(Work, "work", DIAL9_FIELDS((std::uint64_t, number)));

namespace {

using dial9::testing::Counters;

void wait_us(long us) {
  const timespec t{us / 1'000'000, us % 1'000'000 * 1000};
  ::nanosleep(&t, nullptr);
}

void count(std::atomic<std::uint64_t>& calls) {
  calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The events that have shorter ways of their own to the buffer.
void work_on(std::uint64_t thread, std::uint64_t number, dial9::runtime::RuntimeId runtime,
             std::atomic<std::uint64_t>& calls) {
  static dial9::runtime::Place place{"recording_child.cc:1"};
  const dial9::runtime::TaskRef task{(thread + 1) << 22 | (number & 0x3F'FFFF), &place};
  dial9::runtime::task_ready(task.id);
  count(calls);
  {
    const dial9::runtime::PollScope poll(runtime, task);
    count(calls);
    if (number % 9 == 0) {
      {
        const dial9::span<Work> span({number});
        count(calls);
      }
      count(calls);
    }
  }
  count(calls);
}

// Bursts, so that the collector and the disk keep up on a small machine: losses are allowed and
// counted, but they aren't what this is about.
void record_on(std::uint64_t thread, Counters* counters, const std::atomic<bool>* is_done) {
  static const auto runtime = dial9::runtime::register_runtime("survival");
  dial9::runtime::enter_worker(runtime);
  for (std::uint64_t number = 0; !is_done->load(std::memory_order_relaxed); ++number) {
    dial9::record(Numbered{thread, number, dial9::testing::name_of(number)});
    counters->done[thread].value.store(number + 1, std::memory_order_relaxed);
    if (number % 3 == 0) work_on(thread, number, runtime, counters->other[thread].value);
    // And ever slower, so that a child that lives long doesn't outgrow its budget.
    if (number % 64 == 63) wait_us(200 + static_cast<long>(number / 100));
  }
}

bool is_in_memory_group() {
  std::ifstream groups("/proc/self/cgroup");
  const std::string text(std::istreambuf_iterator<char>(groups), {});
  return text.contains("dial9-survival-");
}

// Begins when the parent has put the limit on. Up to a bound: where the limit isn't one, the
// machine shall not pay for it. The stores are volatile, since a compiler may leave out memory that
// nobody reads.
[[noreturn]] void end_by_oom() {
  for (int tries = 0; tries < 100'000 && !is_in_memory_group(); ++tries) wait_us(100);
  for (int mib = 0; mib < 256; ++mib) {
    auto* bytes = static_cast<volatile char*>(std::malloc(1 << 20));
    for (int at = 0; bytes != nullptr && at < 1 << 20; at += 4096) bytes[at] = 1;
  }
  ::_exit(9);
}

void end(const std::string& how) {
  if (how == "segv") {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  if (how == "abort") std::abort();
  if (how == "exit") ::_exit(7);
  if (how == "oom") end_by_oom();
  if (how == "wait") ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string how = argv[3];
  const long delay_us = std::atol(argv[4]);
  const unsigned long seed = std::strtoul(argv[5], nullptr, 10);
  const int fd = ::open(argv[2], O_RDWR | O_CLOEXEC);
  void* shared = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shared == MAP_FAILED) return 2;
  auto* counters = static_cast<Counters*>(shared);

  dial9::RecorderOptions options = dial9::RecorderOptions::disk(argv[1]);
  options.budget_bytes = std::uint64_t{256} << 20;
  // Small segments and short turns, so that kills fall into every part of the collector's work.
  options.segment_bytes = (std::uint64_t{64} << 10) << (seed % 4);
  options.rotation_period = std::chrono::milliseconds(10 + seed % 40);
  options.arena_bytes = std::uint64_t{1} << (seed % 2 == 0 ? 20 : 22);
  auto [recorder, status] = dial9::Recorder::start(options);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 2;
  }
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < dial9::testing::kThreads; ++t) {
    threads.emplace_back(record_on, t, counters, &is_done);
  }
  // On a busy machine none may have had its turn when the end comes: nothing would be proven.
  while (counters->done[0].value.load(std::memory_order_relaxed) == 0) wait_us(50);
  counters->is_recording.store(1, std::memory_order_release);
  wait_us(delay_us);
  if (how != "stop") end(how);
  // The orderly end: what the dead ones left is recovered by then.
  while (recorder.status().runs_recovered < seed) wait_us(1000);
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  return recorder.stop().is_complete ? 0 : 1;
}
