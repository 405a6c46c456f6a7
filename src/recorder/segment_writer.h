// Puts streams into segments: a prologue in each (clock pair, metadata), rotation by age and size
// on the monotonic clock, retry after failures. Strongest property: every event handed in is
// counted exactly once, as written or as lost with its time range; an empty segment is never
// sealed. Spec: docs/spec/recorder.md, "Segments".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "recorder/arena.h"
#include "recorder/segment_store.h"

namespace dial9::internal {

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct SegmentWriterOptions {
  std::uint64_t segment_bytes;
  std::uint64_t rotation_ns;
  std::function<Metadata()> metadata;               // asked at each prologue
  std::function<std::uint64_t()> realtime_ns;       // with each clock pair
  std::function<void(const std::string&)> message;  // one line, rarely
};

// What one stream carries: `first_ns` and `last_ns` bound its events' times.
struct StreamInfo {
  std::uint64_t events = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
};

struct WriterTotals {
  std::uint64_t events = 0;  // of append(); the writer's own are not counted
  std::uint64_t bytes = 0;
  std::uint64_t sealed = 0;
};

// The collector's thread only. `now_ns` is the collector's clock (injected in tests).
class SegmentWriter {
 public:
  // Losses are counted in `arena`. Both outlive the writer.
  SegmentWriter(SegmentStore& store, Arena& arena, SegmentWriterOptions options);

  // One stream, as `prefix` followed by `body`. Staged; seals and opens segments as sizes demand.
  void append(std::span<const std::uint8_t> prefix, std::span<const std::uint8_t> body,
              const StreamInfo& info, std::uint64_t now_ns);
  // Loss records for what was lost and not reported yet.
  void report_losses(std::uint64_t now_ns);
  // Hands staged bytes to the store.
  void flush(std::uint64_t now_ns);
  // Metadata changed: into the current segment too.
  void write_metadata(std::uint64_t now_ns);
  // True if the active segment is due by age.
  bool is_due(std::uint64_t now_ns) const;
  // Seals the active segment, if there is one. False: it could not be sealed.
  bool seal(std::uint64_t now_ns);
  // Looks whether the active segment was removed. A system call: about once a second.
  void check_intact(std::uint64_t now_ns);

  const WriterTotals& totals() const { return totals_; }
  // Empty while all is well; else what fails since the last success.
  const std::string& failure() const { return failure_; }

 private:
  bool open_segment(std::uint64_t now_ns);
  void stage(std::span<const std::uint8_t> bytes);
  std::vector<std::uint8_t> prologue(std::uint64_t now_ns, bool is_sealing) const;
  void fail(const Error& error, std::uint64_t now_ns);
  void lose_staged();

  SegmentStore& store_;
  Arena& arena_;
  const SegmentWriterOptions options_;
  std::vector<std::uint8_t> staged_;
  StreamInfo staged_info_;
  StreamInfo active_info_;  // of what the store took
  std::uint64_t active_bytes_ = 0;
  std::uint64_t opened_ns_ = 0;
  std::uint64_t next_index_ = 0;
  bool is_open_ = false;
  std::uint64_t retry_ns_ = 0;
  std::string failure_;
  WriterTotals totals_;
  // Losses that were told of: in all; in staged bytes; in the active segment. The latter two are
  // told again if the bytes come to nothing.
  struct ToldLoss {
    std::uint64_t count = 0;
    std::uint64_t first_ns = 0;
    std::uint64_t last_ns = 0;
  };
  using ToldLosses = std::array<ToldLoss, kLossCauses>;
  static void merge(ToldLosses& into, ToldLosses& from);
  void untell(ToldLosses& told);
  std::array<std::uint64_t, kLossCauses> reported_{};
  ToldLosses staged_losses_{};
  ToldLosses active_losses_{};
};

}  // namespace dial9::internal
