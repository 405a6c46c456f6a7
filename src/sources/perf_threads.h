// A perf event with its ring for each thread, opened from outside: the thread needn't do anything,
// and gets no signal. Strongest property: descriptors and locked memory stay within their bounds
// however many threads there are; those beyond are counted. Everything is given back.
// Spec: docs/spec/cpu_samples.md, "Perf".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/guarded_fd.h"
#include "sources/perf_event.h"
#include "sources/perf_ring.h"
#include "sources/thinning.h"

namespace dial9::internal {

// What this process may take. Of the descriptors that others leave of RLIMIT_NOFILE a quarter, at
// most 256. Of locked memory half of RLIMIT_MEMLOCK or what perf_event_mlock_kb allows for one CPU,
// whichever is more, at most 64 MiB.
struct PerfRoom {
  std::size_t descriptors = 0;
  std::size_t ring_bytes = 0;
};
inline constexpr std::size_t kMostPerfDescriptors = 256;
inline constexpr std::size_t kMostPerfRingBytes = std::size_t{64} << 20;
// As it is now, with `opened` of the descriptors being the caller's own.
PerfRoom perf_room(std::size_t opened);

// What a ring should hold: the samples of 300 ms, a power of two from 32 KiB to 512 KiB.
std::size_t perf_ring_bytes(std::uint64_t period_ns);
inline constexpr std::size_t kSwitchRingBytes = 32 << 10;        // 1,365 switches
inline constexpr std::size_t kSwitchStackRingBytes = 128 << 10;  // 15 stacks

struct PerfCounts {
  std::uint32_t sampled = 0;
  std::uint32_t refused = 0;      // no descriptor, or no ring
  std::string refusal;            // one of the reasons
  std::size_t smallest_ring = 0;  // 0: none
  std::uint64_t throttled = 0;    // times, so far
};

// What a thread's event has counted, beside its samples. A timer that came late, where the machine
// wasn't there (steal), makes one sample of several periods: the event's count says of how many.
struct PerfProgress {
  std::uint64_t lost = 0;      // counted so far
  std::uint64_t lost_now = 0;  // told of, before the sample that is to come
  std::uint64_t periods = 0;   // of the thread's time, that samples and losses stand for so far
  Thinning thinning{};

  // How many periods a sample at `count_ns` stands for.
  std::uint64_t weigh(std::uint64_t count_ns, const PerfPlan& plan);
  // The same of `more` lost samples, before the sample at `count_ns`, or the end there: each of
  // them, and that sample, has an equal part of what went by. At least `more`.
  std::uint64_t lose(std::uint64_t more, std::uint64_t count_ns, bool is_end, const PerfPlan& plan);
};

// One thread at a time.
class PerfThreads {
 public:
  explicit PerfThreads(const PerfPlan& plan);
  ~PerfThreads();
  PerfThreads(const PerfThreads&) = delete;
  PerfThreads& operator=(const PerfThreads&) = delete;

  // Opens events for threads that are new, and marks those that ended; gives some back where others
  // need the room. `own_tid` is left alone. Cost: 14 us + 1 us a thread, 50 us for a new one.
  void scan(std::uint32_t own_tid);
  void scan(std::uint32_t own_tid, const PerfRoom& room);
  // No more samples; drain() closes.
  void halt();

  using OnSample = std::function<void(const PerfSample&, const std::string& name, PerfProgress&)>;
  using OnLost = std::function<void(std::uint64_t samples, std::uint64_t periods)>;
  // What the rings hold. `on_lost`: samples for which a ring had no room, and what they stood for.
  void drain(const OnSample& on_sample, const OnLost& on_lost);
  // The same of one thread's ring; false: it has none.
  bool drain(std::uint32_t tid, const OnSample& on_sample, const OnLost& on_lost);

  // Of a plan of kSwitches. What a thread's ring holds; false: it has none.
  bool drain_switches(std::uint32_t tid, std::vector<ThreadSwitch>* to);
  // What the rings of threads that ended held; closes them.
  void drain_ended_switches(std::vector<ThreadSwitch>* to);

  const PerfCounts& counts() const { return counts_; }

 private:
  enum class State : std::uint8_t { kNew, kOpen, kRefused };
  struct Thread {
    State state = State::kNew;
    std::uint32_t tid = 0;
    GuardedFd event;
    std::unique_ptr<PerfRing> ring;
    std::uint64_t round = 0;  // of the scan that saw it last
    std::string name;
    bool has_samples = false;
    PerfProgress progress;
  };

  void open(std::uint32_t tid, Thread& thread);
  void refuse(Thread& thread, std::string why);
  static void name(std::uint32_t tid, Thread& thread);
  std::unique_ptr<PerfRing> make_ring(int fd);
  void end(Thread& thread);
  void close(Thread& thread, const OnLost& on_lost);
  void find_ended();
  template <class Function>
  static std::size_t take_records(PerfRing& ring, Function function);
  void drain_one(Thread& thread, const OnSample& on_sample, const OnLost& on_lost);
  static void drain_switches(PerfRing& ring, std::uint32_t tid, std::vector<ThreadSwitch>* to);
  void count();

  const PerfPlan plan_;
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::vector<Thread> ending_;  // closed by the next drain()
  std::vector<std::uint32_t> tids_;
  std::uint64_t round_ = 0;
  std::size_t next_look_ = 0;
  PerfRoom room_;
  std::size_t opened_ = 0;
  std::size_t ring_bytes_ = 0;  // of all
  PerfCounts counts_;
};

}  // namespace dial9::internal
