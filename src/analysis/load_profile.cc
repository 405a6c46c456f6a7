// Handlers for what profilers record. A stack is kept once however often it is met; the pooled ids
// of a stream stand for its stacks until they are defined again.
// Spec: docs/spec/events.md, "Profiling".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "analysis/loader_impl.h"
#include "symbolize/demangle.h"

namespace dial9::analysis {

using format::Event;
using format::FieldType;

namespace {

std::uint64_t hash_of(std::span<const std::uint64_t> frames) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U + frames.size();
  for (const std::uint64_t frame : frames) {
    hash = (hash ^ frame) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void Loader::Impl::on_stack(std::uint32_t id, std::span<const std::uint64_t> /*leaf_first*/) {
  stack_pool_.erase(id);  // another stack from here on
}

std::uint32_t Loader::Impl::intern_stack(std::span<const std::uint64_t> frames) {
  if (frames.empty()) {
    return kNoIndex;
  }
  Stacks& stacks = trace_.stacks;
  const std::uint64_t hash = hash_of(frames) ^ run_;
  // Stacks that were made to have one hash are kept as often as they are met.
  constexpr int kMostCompared = 16;
  int compared = 0;
  const auto [first, last] = stack_by_hash_.equal_range(hash);
  for (auto at = first; at != last && compared < kMostCompared; ++at, ++compared) {
    const Range range = stacks.ranges[at->second];
    bool is_same = range.size() == frames.size() && stacks.runs[at->second] == run_;
    for (std::uint32_t i = 0; is_same && i < range.size(); ++i) {
      is_same = stacks.frames[range.first + i] == frames[i];
    }
    if (is_same) {
      return at->second;
    }
  }
  constexpr std::size_t kFramesPerCharge = 16;
  charge(1 + frames.size() / kFramesPerCharge);
  const auto from = static_cast<std::uint32_t>(stacks.frames.size());
  for (const std::uint64_t frame : frames) {
    stacks.frames.push_back(frame);
  }
  const auto number = static_cast<std::uint32_t>(stacks.ranges.size());
  stacks.ranges.push_back({from, static_cast<std::uint32_t>(stacks.frames.size())});
  stacks.runs.push_back(run_);
  if (compared < kMostCompared) {
    stack_by_hash_.emplace(hash, number);
  }
  return number;
}

std::uint32_t Loader::Impl::stack(const format::Value& value) {
  if (!value.is_present) {
    return kNoIndex;
  }
  if (value.type == FieldType::kPooledStackFrames) {
    const auto id = static_cast<std::uint32_t>(value.bits);
    if (const auto known = stack_pool_.find(id); known != stack_pool_.end()) {
      return known->second;
    }
    const auto frames = decoder_->stack(id);
    const std::uint32_t number = frames ? intern_stack(*frames) : kNoIndex;
    stack_pool_.emplace(id, number);
    return number;
  }
  if (value.type != FieldType::kStackFrames) {
    return kNoIndex;
  }
  std::vector<std::uint64_t> frames(value.frame_count());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames[i] = value.frame(i);
  }
  return intern_stack(frames);
}

std::uint32_t Loader::Impl::stack(const Event& event, std::int16_t field) {
  return field < 0 ? kNoIndex : stack(event.values[static_cast<std::size_t>(field)]);
}

void Loader::Impl::on_cpu_sample(const Event& event, const Plan& plan) {
  CpuSample sample;
  sample.at_ns = event.timestamp_ns;
  sample.tid = number32(event, plan.field[0], 0);
  sample.source = number(event, plan.field[1], 0) == 0 ? SampleSource::kCpu : SampleSource::kSwitch;
  sample.thread_name = text(event, plan.field[2]);
  sample.stack = stack(event, plan.field[3]);
  sample.weight = number32(event, plan.field[4], 1);
  // Where the sampler couldn't look, what is absent isn't known; else it is none.
  const bool has_context = number(event, plan.field[10], 1) != 0;
  const auto owner = [&](std::int16_t field) {
    return field < 0 || !has_context ? kUnknownId : identity(event, field, 0);
  };
  sample.task_id = owner(plan.field[5]);
  sample.span_id = owner(plan.field[6]);
  sample.is_label_known = has_context && plan.field[7] >= 0;
  sample.label_name = text(event, plan.field[7]);
  sample.label_value = text(event, plan.field[8]);
  sample.is_truncated = number(event, plan.field[9], 0) != 0;
  sample.unwound = unwound_by(trace_.names.text(text(event, plan.field[11])));
  samples_.push_back(sample);
}

void Loader::Impl::on_label_change(const Event& event, const Plan& plan) {
  LabelChange change;
  change.at_ns = event.timestamp_ns;
  change.tid = number32(event, plan.field[0], 0);
  change.task_id = identity(event, plan.field[1], kUnknownId);
  change.is_known = number(event, plan.field[2], 0) != 0;
  change.name = text(event, plan.field[3]);
  change.value = text(event, plan.field[4]);
  label_changes_.push_back(change);
}

void Loader::Impl::on_label_coverage(const Event& event, const Plan& plan) {
  LabelCoverage coverage;
  coverage.at_ns = event.timestamp_ns;
  coverage.since_ns = number(event, plan.field[0], kUnknownNs);
  coverage.until_ns = number(event, plan.field[1], 0);
  coverage.lists_tasks = number(event, plan.field[2], 0) != 0;
  coverage.lists_threads = number(event, plan.field[3], 0) != 0;
  coverage.listed_ns = number(event, plan.field[4], kUnknownNs);
  label_coverage_.push_back(coverage);
}

// Names that their writer had no room to unfold are mangled. Bounded: each once, by the bytes that
// one may unfold to, and by those of all of them; others have their short forms.
NameId Loader::Impl::readable(NameId function) {
  constexpr std::size_t kMostUnfoldedBytes = std::size_t{1} << 20;
  if (!trace_.names.text(function).starts_with("_Z") || trace_.hit_memory_limit) {
    return function;
  }
  const auto [at, is_new] = readable_.try_emplace(function);
  if (is_new) {
    const std::string_view mangled = trace_.names.text(function);
    const std::size_t most = std::min(kMostUnfoldedBytes, unfold_left_);
    const std::string name = symbolize::readable_name(mangled, most);
    const double unfolded = symbolize::unfolded_at_most(mangled);
    unfold_left_ -= unfolded <= static_cast<double>(most) ? static_cast<std::size_t>(unfolded) : 0;
    charge(name.size());
    at->second = trace_.names.intern(name);
  }
  return at->second;
}

void Loader::Impl::on_symbol(const Event& event, const Plan& plan) {
  Symbol symbol;
  symbol.addr = number(event, plan.field[0], 0);
  symbol.size = number(event, plan.field[1], 0);
  symbol.name = readable(text(event, plan.field[2]));
  symbol.inline_depth = number32(event, plan.field[3], 0);
  symbol.file = text(event, plan.field[4]);
  symbol.line = number32(event, plan.field[5], 0);
  symbol.run = run_;
  trace_.symbols.add(symbol);
}

void Loader::Impl::on_module(const Event& event, const Plan& plan) {
  Module module;
  module.path = text(event, plan.field[0]);
  module.build_id = text(event, plan.field[1]);
  module.begin = identity(event, plan.field[2], 0);
  module.end = identity(event, plan.field[3], 0);
  module.bias = identity(event, plan.field[4], 0);
  ModuleSetTimes times;
  times.epoch = number(event, plan.field[5], 0);
  times.since_ns = number(event, plan.field[6], event.timestamp_ns);
  times.before_held_ns = number(event, plan.field[7], 0);
  times.only_added = number(event, plan.field[8], 0) != 0;
  times.seen_ns = event.timestamp_ns;
  trace_.modules.add(run_, times, module);
}

void Loader::Impl::on_task_dump(const Event& event, const Plan& plan) {
  const std::uint32_t task = task_index(number(event, plan.field[0], 0), event.timestamp_ns);
  if (task != kNoIndex) {
    dumps_.push_back({event.timestamp_ns, task, stack(event, plan.field[1])});
  }
}

}  // namespace dial9::analysis
