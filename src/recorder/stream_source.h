// A source whose events aren't recorded on the collector's thread but gathered elsewhere (in signal
// handlers): it hands over finished streams. Strongest property: what it took of the host (timers)
// is given back as recording ends, and what it gathered until then is in the last segment.
// Spec: docs/spec/recorder.md, "Sources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dial9/recorder.h"
#include "recorder/governor.h"
#include "recorder/segment_writer.h"

namespace dial9::internal {

// One whole stream, and what it carries.
struct SourceStream {
  std::vector<std::uint8_t> bytes;
  StreamInfo info;
};

// All calls on the collector's thread, but for metadata, which any thread asks for. In the child of
// a fork the parent's state is worth nothing: the source has to notice.
class StreamSource {
 public:
  virtual ~StreamSource() = default;

  // Recording is on. Returns when it would be called again while the host is busy; `now_ns` is the
  // collector's clock.
  virtual std::uint64_t attend(std::uint64_t now_ns) = 0;
  // When it has to be called again even if the host records nothing. Asked after attend().
  virtual std::uint64_t wake_ns() const { return ~std::uint64_t{0}; }
  // Recording is off, or about to end.
  virtual void rest() = 0;
  // What was gathered since. Also before each rotation and after the last rest().
  virtual std::vector<SourceStream> take() = 0;

  // All events of threads that are stamped before `before_ns` are in segments, as far as they
  // weren't lost. `is_all`: and the active one is about to be sealed; true: take() has more for it.
  virtual bool drained(std::uint64_t /*before_ns*/, bool /*is_all*/) { return false; }

  // What each segment begins with, behind its prologue: whole streams, which count as no events.
  // Called inside the writer, with no call above under way.
  virtual std::vector<std::uint8_t> opening() { return {}; }

  // What its samples have cost the host's threads so far: time measured there, each at most 50 us.
  // What it does on the collector's thread is counted with that.
  virtual std::uint64_t host_cost_ns() const { return 0; }

  // How far it may be thinned: of what it would sample one in `one_in` (a power of two) is taken
  // from now on, and stands for all of them. Returns false where it can't be.
  virtual bool thin(std::uint32_t /*one_in*/) { return false; }
  // Of one that can be thinned.
  virtual SampleKind sample_kind() const { return SampleKind::kCpu; }
  // How far it is thinned, where its threads may have gone on from what it was told.
  virtual std::uint32_t thinned_to(std::uint32_t told) const { return told; }
  // Of the bytes that it has handed over, about: what followed from samples that were taken before,
  // whatever is taken now.
  virtual std::uint64_t late_bytes() const { return 0; }
  // The user's budget for all of recording. For a source that keeps to a share of its own.
  virtual void set_budget(const GovernorBudget& /*budget*/) {}

  // For RecorderStatus::sources; empty: not shown. And why it makes nothing, or less than it
  // should; empty: nothing is amiss. Any thread.
  virtual std::string_view name() const { return {}; }
  virtual std::string shortfall() const { return {}; }

  // Changes whenever metadata() would.
  virtual std::uint64_t metadata_version() const = 0;
  virtual Metadata metadata() const = 0;

 private:
  friend class Collector;
  friend std::vector<SourceStatus> stream_source_statuses();
  friend void reset_stream_counts();
  std::atomic<std::uint64_t> events_{0};  // taken, since the recorder started
  // The collector's.
  bool is_thinned_ = false;
  bool has_budget_ = false;       // was told of it
  std::uint64_t late_bytes_ = 0;  // as of the last take()
};

inline constexpr int kMostStreamSources = 8;
// For the process's life. False: there are so many already.
bool add_stream_source(StreamSource* source) noexcept;
// Those that were added. Allocates nothing: the collector asks in each pass.
class StreamSources {
 public:
  StreamSources();
  StreamSource* const* begin() const { return sources_; }
  StreamSource* const* end() const { return sources_ + count_; }

 private:
  StreamSource* sources_[kMostStreamSources] = {};
  int count_ = 0;
};
inline StreamSources stream_sources() { return {}; }

void reset_stream_counts();
std::vector<SourceStatus> stream_source_statuses();

std::uint64_t stream_sources_metadata_version();
Metadata stream_sources_metadata();

}  // namespace dial9::internal
