// Puts streams into segments: a prologue in each (clock pair, metadata), rotation by age and size
// on the monotonic clock, retry after failures. Strongest property: every event handed in is
// counted exactly once, as written or as lost with its time range, and the arena's journal says
// which at any instruction; an empty segment is never sealed. Spec: docs/spec/recorder.md,
// "Segments".
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

  // Called after each flush: what was staged is settled, as written or as lost, and its bytes in
  // the arena are of no use any more.
  void set_on_settled(std::function<void()> on_settled) { on_settled_ = std::move(on_settled); }

  // One stream, as `prefix` followed by `body`, neither of them empty together. Staged until the
  // next flush(), which may come inside a later append(); seals and opens segments as sizes demand.
  // Returns the position in the journal at which the stream is settled.
  std::uint64_t append(std::span<const std::uint8_t> prefix, std::span<const std::uint8_t> body,
                       const StreamInfo& info, std::uint64_t now_ns);
  // Right after an append(): what it staged isn't what it seemed to be, and comes to nothing.
  void take_back();
  // Each segment gets the stream that this makes, if any, behind its prologue.
  void set_opening(std::function<std::vector<std::uint8_t>()> opening) {
    opening_ = std::move(opening);
  }
  // A stream of the recorder's own, which counts as no event, into the active segment. Dropped if
  // there is none: what matters beyond it belongs into the opening.
  void append_own(std::span<const std::uint8_t> stream, std::uint64_t now_ns);
  // Loss records for what was lost and not reported yet.
  void report_losses(std::uint64_t now_ns);
  // The arena has left its file: what was told of losses is put into its counters again, and that
  // all of it is lost which was in no segment, recorded from `first_ns` on.
  void lose_buffers(std::uint64_t first_ns, std::uint64_t now_ns);
  // That recording was off: what happened meanwhile is in no segment, and is no loss. False: there
  // is no segment that could tell of it.
  bool tell_off(std::uint64_t first_ns, std::uint64_t last_ns, std::uint64_t now_ns);
  // Hands staged bytes to the store; counts them as lost where it can't take them.
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
  void settle(std::uint64_t position);
  void count_own_loss(LossCause cause, const StreamInfo& info, std::uint64_t position);
  // Where the staged bytes end.
  std::uint64_t staged_end() const { return journal_.confirmed() + staged_.size() + unstaged_; }

  SegmentStore& store_;
  Arena& arena_;
  Journal journal_;
  const SegmentWriterOptions options_;
  std::function<void()> on_settled_;
  std::function<std::vector<std::uint8_t>()> opening_;
  std::vector<std::uint8_t> staged_;
  std::uint64_t unstaged_ = 0;  // bytes that no segment could be opened for: lost at the next flush
  StreamInfo staged_info_;
  struct {
    std::size_t staged_bytes = 0;
    std::uint64_t unstaged_bytes = 0;
    StreamInfo info;
    bool is_there = false;
  } last_append_;           // as all was before it
  StreamInfo active_info_;  // of what the store took
  std::uint64_t active_bytes_ = 0;
  std::uint64_t opened_ns_ = 0;
  std::uint64_t next_index_ = 0;
  bool is_open_ = false;
  bool has_lost_buffers_ = false;
  std::uint64_t retry_ns_ = 0;
  std::string failure_;
  bool is_trouble_told_ = false;      // and not its end yet
  std::uint64_t works_since_ns_ = 0;  // the last failure
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
