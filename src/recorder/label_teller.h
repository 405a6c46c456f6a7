// Tells which labels hold, and up to when all changes are in the trace: at the begin of each
// segment, since what was told before may be evicted by then, about once a second, and as the last
// watcher leaves. Strongest property: what it can't be sure of it doesn't say, and readers take the
// label for unknown.
// Spec: docs/spec/cpu_samples.md, "Labels of what the kernel samples".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "recorder/sample_streams.h"
#include "recorder/stream_source.h"

namespace dial9::internal {

class LabelTeller final : public StreamSource {
 public:
  // What was under way as labels began to be watched is over then: it takes nanoseconds.
  static constexpr std::uint64_t kGraceNs = 10'000'000;
  static constexpr std::size_t kMostListed = 512;  // of tasks, and of threads

  // The recorder's clock.
  explicit LabelTeller(std::uint64_t (*now_ns)() noexcept);
  std::uint64_t attend(std::uint64_t now_ns) override;
  void rest() override;
  std::vector<SourceStream> take() override;
  std::vector<std::uint8_t> opening() override;
  bool drained(std::uint64_t before_ns, bool is_all) override;
  std::uint64_t metadata_version() const override { return 0; }
  Metadata metadata() const override { return {}; }

 private:
  bool is_telling() const;
  std::uint64_t watched_until() const;
  bool is_over() const;
  void begin_anew();
  void tell(SampleStreams& streams, bool lists);

  std::uint64_t (*const now_ns_)() noexcept;
  std::unique_ptr<SampleStreams> streams_;
  std::uint32_t process_;
  bool is_child_ = false;  // of a fork: threads' labels may be those of its parent's
  bool is_resting_ = false;
  std::uint32_t watch_number_ = 0;  // as all below began
  std::uint64_t asked_ns_ = 0;      // labels are watched and recorded since; 0: they aren't
  std::uint64_t since_ns_ = 0;      // every change from here on is told; 0: none is
  std::uint64_t until_ns_ = 0;      // and up to here is in a segment
  std::uint64_t told_until_ns_ = 0;
  std::uint64_t next_list_ns_ = 0;  // not tried again before; each time twice as long
  std::uint64_t list_gap_ns_ = 0;
  bool has_listed_ = false;  // since since_ns_
  bool is_due_ = false;      // a segment is about to be sealed, or nobody watches any more
};

// Adds it to the process's sources. False: there are too many.
bool require_label_teller() noexcept;

}  // namespace dial9::internal
