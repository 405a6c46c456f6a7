// What is in a trace, counted in one pass and in memory that doesn't grow with it: events by type,
// time range, clock anchors, metadata, loss, records that go back in time. For streams of any size.
// Spec: docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/segment_gaps.h"
#include "analysis/stretches.h"
#include "analysis/trace.h"
#include "format/decoder.h"

namespace dial9::analysis {

// Counts what one or many decoders see, one after the other. Not movable. Memory: the schemas'
// names, at most 4,096 anchors, 4,096 causes of loss, 4,096 classes of what was shed, 4,096
// stretches of recording off and 4,096 metadata keys (beyond them the later ones are left out), and
// 65,536 workers a stream (inversions of further ones aren't counted).
class Census {
 public:
  struct Loss {
    std::uint64_t count = 0;
    std::uint64_t unknown = 0;  // records of loss that don't know how many
    std::uint64_t first_ns = ~std::uint64_t{0};
    std::uint64_t last_ns = 0;
  };

  struct Shed {
    std::uint64_t shed = 0;  // units left out to keep within the recorder's budget
    double keep_one_in = 1;  // the most that was told
  };
  // Sums over the recorder's bills.
  struct Bill {
    std::uint64_t elapsed_ns = 0;
    std::uint64_t collector_cpu_ns = 0;
    std::uint64_t host_cpu_ns = 0;
    std::uint64_t bytes = 0;
  };

  Census();
  ~Census();
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;

  // What the decoders are given. (Not a base class: the engine is built without RTTI, its users may
  // be built with it.)
  format::Visitor& visitor() { return *visitor_; }
  // Before the first byte of each input; `decoder` outlives its decode.
  void begin_input(const format::Decoder& decoder);

  std::uint64_t events() const { return events_; }
  // Of them, those that a recorder writes for itself and counts as none that it recorded: its
  // clock, metadata, losses, rates, bills, modules and lists of labels.
  std::uint64_t own_events() const { return own_events_; }
  std::uint64_t streams() const { return streams_; }
  std::uint64_t inversions() const { return inversions_; }
  std::uint64_t begin_ns() const { return begin_ns_; }  // 0: no record bears a time
  std::uint64_t end_ns() const { return end_ns_; }
  const std::map<std::string, std::uint64_t>& by_type() const { return by_type_; }
  // By cause; with the segments that are missing.
  std::map<std::string, Loss> loss() const;
  // For how long recording was off, as far as it is told; at least, where has_more_off().
  std::uint64_t off_ns() const;
  bool has_more_off() const { return has_more_off_; }
  const std::map<std::string, Shed>& shed() const { return shed_; }  // by class
  const Bill& bill() const { return bill_; }
  // At times all heap samples but one in so many were left out to keep within the recorder's
  // budget; 1: never. How many isn't known.
  double heap_keep_one_in() const { return heap_keep_one_in_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // last wins
  const std::vector<Anchor>& anchors() const { return anchors_; }
  // Those that were counted; more are lost where has_unknown_loss().
  std::uint64_t lost_events() const;
  bool has_unknown_loss() const;
  // Inputs whose writer doesn't record what it loses: that none is recorded proves nothing.
  std::uint64_t untold_inputs() const { return inputs_ - told_inputs_; }
  // Wall time by the nearest anchor; nullopt without one.
  std::optional<std::uint64_t> realtime_ns(std::uint64_t at_ns) const;

 private:
  class Visitor;
  enum class Kind : std::uint8_t {
    kOther,
    kWorker,
    kClockSync,
    kMetadata,
    kLoss,
    kShed,
    kBill,
    kHeapProfile,
    kModule,
    kLabelChange,
    kLabelCoverage,
  };
  struct Plan {
    std::uint64_t* count = nullptr;  // in by_type_
    Kind kind = Kind::kOther;
    int fields[4] = {-1, -1, -1, -1};  // in the order of the handler
  };

  static bool is_own(Kind kind);
  void on_stream_start();
  void on_schema(const format::Schema& schema);
  void on_event(const format::Event& event);
  void on_worker(const format::Event& event, const Plan& plan);
  void on_metadata(const format::Event& event, const Plan& plan);
  void take_told();
  void on_loss(const format::Event& event, const Plan& plan);
  void on_shed(const format::Event& event, const Plan& plan);
  void on_bill(const format::Event& event, const Plan& plan);
  void on_heap_profile(const format::Event& event, const Plan& plan);
  void on_label_change(std::uint64_t at_ns);
  void on_label_coverage(std::uint64_t at_ns);
  std::string text(const format::Event& event, int field) const;
  bool is_repeated(const std::string& kind, std::uint64_t at_ns);

  std::unique_ptr<format::Visitor> visitor_;
  const format::Decoder* decoder_ = nullptr;
  std::vector<Plan> plans_;
  std::map<std::string, std::uint64_t> by_type_;  // nodes are stable: plans point into it
  std::map<std::string, Loss> loss_;
  std::map<std::string, Shed> shed_;
  Bill bill_;
  double heap_keep_one_in_ = 1;
  SegmentGaps gaps_;
  std::string run_;  // the boot id that the metadata before told
  // Of each class of each run: the last record of rates.
  std::map<std::pair<std::string, std::string>, std::uint64_t> last_shed_ns_;
  std::map<std::string, std::string> metadata_;
  std::vector<Anchor> anchors_;
  TimeStretches off_;                                                // from when to when
  bool has_more_off_ = false;                                        // than are kept
  std::unordered_map<std::uint64_t, std::uint64_t> last_of_worker_;  // in this stream
  std::uint64_t inputs_ = 0;
  std::uint64_t told_inputs_ = 0;
  bool is_told_ = false;  // of this input
  std::uint64_t events_ = 0;
  std::uint64_t own_events_ = 0;
  std::uint64_t label_changes_ = 0;  // the last ones in a row that have one stamp, which is
  std::uint64_t label_stamp_ns_ = 0;
  std::uint64_t streams_ = 0;
  std::uint64_t inversions_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t end_ns_ = 0;
};

}  // namespace dial9::analysis
