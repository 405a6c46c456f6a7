// Which samples and waits a reader takes: by time, worker, thread, task, span and label. Strongest
// property: where it can't be told whether a sample is meant, the verdict says so; it is neither
// taken nor left silently. Spec: docs/spec/flame.md, "CPU time".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "analysis/trace.h"

namespace dial9::analysis {

// What is set has to be so.
struct SampleFilter {
  std::uint64_t from_ns = 0;  // as recorded; [from, to)
  std::uint64_t to_ns = ~std::uint64_t{0};
  std::optional<std::uint32_t> worker = {};
  std::string thread = {};                 // its name, or its id
  std::optional<std::uint64_t> task = {};  // an id
  std::optional<std::uint64_t> span = {};  // an id: in it or in a span inside it
  std::string label = {};                  // "name=value", or a name alone: has such a label
  bool operator==(const SampleFilter&) const = default;
  bool empty() const { return *this == SampleFilter{}; }
  // `thread` can only be a name, which not all events tell.
  bool has_thread_name() const { return thread.find_first_not_of("0123456789") != thread.npos; }
  bool has_time(std::uint64_t at_ns) const { return at_ns >= from_ns && at_ns < to_ns; }
};

// What all that a filter takes lies in: its range, and no more than its span.
struct Stretch {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = ~std::uint64_t{0};
  std::uint32_t span = kNoIndex;  // whose begin and end are recorded
  bool has_span() const { return span != kNoIndex; }
};
Stretch stretch_of(const Trace& trace, const SampleFilter& filter);

// Of a sample, or of a wait.
struct SampleContext {
  std::uint64_t at_ns = 0;
  std::uint64_t task_id = kUnknownId;  // 0: none; kUnknownId: not recorded
  std::uint64_t span_id = kUnknownId;  // likewise
  std::uint32_t tid = 0;
  std::uint32_t lane = kNoIndex;  // of the worker that the thread was; kNoIndex: of none
  NameId thread_name = kNoName;
  NameId label_name = kNoName;
  NameId label_value = kNoName;
  bool is_label_known = true;  // else it isn't recorded whether it has one
};

enum class Verdict : std::uint8_t { kTakes, kLeaves, kUnknown };

class SampleJudge {
 public:
  // Both outlive this.
  SampleJudge(const Trace& trace, const SampleFilter& filter);
  Verdict judge(const SampleContext& sample) const {
    return filter_.has_time(sample.at_ns) ? judge_all_but_time(sample) : Verdict::kLeaves;
  }
  // For what has a duration: whoever asks cuts it to the range.
  Verdict judge_all_but_time(const SampleContext& sample) const;
  // Of worker and thread alone.
  bool is_on_thread(std::uint32_t tid, NameId thread_name, std::uint32_t lane) const;

 private:
  void add_spans_inside(std::uint64_t id);
  bool has_label(const SampleContext& sample) const;

  const Trace& trace_;
  const SampleFilter& filter_;
  std::unordered_set<std::uint64_t> spans_;
};

}  // namespace dial9::analysis
