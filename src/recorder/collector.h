// The collector: one thread that drains thread buffers, samples sources, rotates segments and
// keeps the clock calibrated. Strongest property: it never spins and never makes a host thread
// wait; with nothing to do it wakes four times a second. Spec: docs/spec/recorder.md, "Collector".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "recorder/arena.h"
#include "recorder/clock_calibration.h"
#include "recorder/cost_keeper.h"
#include "recorder/drainer.h"
#include "recorder/recording_pause.h"
#include "recorder/segment_writer.h"

namespace dial9::internal {

class StreamSource;

struct CollectorCounts {
  std::uint64_t events_written = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t segments_sealed = 0;
  std::uint64_t segments_evicted = 0;
  std::uint64_t bytes_held = 0;
  double events_per_second = 0;
  double bytes_per_second = 0;
  std::uint64_t last_event_ns = 0;  // by the collector's clock; 0: none yet
  CostBill bill;
  std::string failure;
};

// Where time comes from: the collector's own monotonic clock, and the realtime for clock pairs; and
// whether anything is sampled.
struct CollectorSeams {
  std::function<std::uint64_t()> now_ns;
  std::function<std::uint64_t()> realtime_ns;
  bool has_sources = true;  // false: neither sources nor runtimes are sampled, nor own costs
};

// One pass of the collector's work, without its thread: tests step it by hand. All but counts() on
// one thread.
class Collector {
 public:
  // `metadata_version` changes whenever the writer's metadata does. `calibration` may be null: the
  // kernel's clock.
  Collector(Arena& arena, SegmentStore& store, SegmentWriter& writer, CollectorSeams clock,
            std::function<std::uint64_t()> metadata_version, ClockCalibration* calibration,
            const GovernorBudget& budget);

  // Does what is due and returns the ns to sleep until the next pass.
  std::uint64_t step();
  // Everything recorded so far into a sealed segment. False: it could not be sealed.
  bool seal_all();
  // The arena has left its file.
  void lose_buffers();
  // Recording ends: before the last seal_all().
  void rest_sources();

  // Any thread.
  CollectorCounts counts() const;
  RecordingPause& off_stretch() { return off_stretch_; }

 private:
  void sample(std::uint64_t now_ns);
  void attend_streams(std::uint64_t now_ns);
  void take_streams(std::uint64_t now_ns);
  void tell_drained(std::uint64_t before_ns, bool is_all, std::uint64_t now_ns);
  void take_stream(StreamSource& source, std::uint64_t now_ns);
  std::vector<std::uint8_t> opening();
  void recalibrate(std::uint64_t now_ns);
  DrainResult drain_and_report(std::uint64_t now_ns, bool takes_all);
  CostReading cost_reading(std::uint64_t now_ns) const;
  void keep_costs(std::uint64_t now_ns);
  void decide_costs(std::uint64_t now_ns);
  void thin_sources();
  void adopt_thinning();
  void tell_raises();
  void tell_off(std::uint64_t now_ns, bool tells_what_goes_on);
  void update_counts(std::uint64_t now_ns, const DrainResult& drained);
  std::uint64_t sleep_after(std::uint64_t now_ns, const DrainResult& drained);

  Arena& arena_;
  SegmentStore& store_;
  SegmentWriter& writer_;
  const CollectorSeams clock_;
  const std::function<std::uint64_t()> metadata_version_now_;
  ClockCalibration* const calibration_;
  Drainer drainer_;
  const GovernorBudget budget_;
  RecordingPause off_stretch_;
  std::unique_ptr<CostKeeper> costs_;  // from the first pass on, on its thread
  std::uint32_t own_tid_ = 0;
  std::uint64_t next_calibration_ns_ = 0;
  std::uint64_t calibration_gap_ns_ = 0;
  std::uint64_t next_second_ns_ = 0;  // once a second: is the segment still there
  std::uint64_t next_anchor_ns_ = 0;  // once a minute: a clock pair
  std::uint64_t metadata_version_ = 0;
  std::uint64_t last_pass_ns_ = 0;
  std::uint64_t sleep_ns_ = 0;
  std::uint64_t next_always_ns_ = 0;
  std::uint64_t next_busy_ns_ = 0;
  bool are_runtimes_quiet_ = true;
  std::uint64_t window_start_ns_ = 0;
  std::uint64_t window_events_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::uint64_t seen_events_ = 0;
  std::uint64_t seen_host_events_ = 0;
  std::uint64_t waiting_bytes_ = 0;  // in thread buffers, after the last drain
  std::uint64_t stream_bytes_ = 0;   // of sources' streams, given to the writer
  // What sources took here that can be thinned: bytes, of stream_bytes_, and CPU time.
  PerSampleKind<ThinnedCost> thinned_;
  PerSampleKind<std::uint32_t> samples_one_in_{};  // as sources were told; 0: they weren't

  mutable std::mutex counts_mutex_;
  CollectorCounts counts_;  // guarded by counts_mutex_
};

}  // namespace dial9::internal
