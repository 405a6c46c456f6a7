// See profile_json.h.
// Strongest property: a frame that no symbol names is shown by its address.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#include "server/profile_json.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "analysis/off_cpu.h"
#include "analysis/sample_filter.h"
#include "server/facts.h"
#include "server/json.h"

namespace dial9::server {
namespace {

using analysis::kNoIndex;
using analysis::Leaf;

constexpr std::size_t kMaxFrames = 256;
constexpr std::uint32_t kShortFrames = 4;

constexpr std::size_t kMaxNameBytes = 512;

// A symbol's name may be of any length.
std::string shortened(std::string_view text) {
  std::string out(text.substr(0, kMaxNameBytes));
  if (out.size() == text.size()) return out;
  while (!out.empty() && (static_cast<unsigned char>(text[out.size()]) & 0xC0) == 0x80) {
    out.pop_back();  // not within a character
  }
  return out + "…";
}

std::string address_text(std::uint64_t address) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, address);
  return text.data();
}

json frame_json(const Run& run, std::uint64_t address, const analysis::Symbol* symbol) {
  const auto& names = run.trace().names;
  const bool is_named = symbol != nullptr && symbol->name != analysis::kNoName;
  const std::string_view file = symbol == nullptr ? "" : names.text(symbol->file);
  return {{"name", is_named ? json(shortened(names.text(symbol->name))) : json()},
          {"file", file.empty() ? json() : json(shortened(file))},
          {"line", symbol == nullptr || symbol->line == 0 ? json() : json(symbol->line)},
          {"address", address_text(address)},
          {"inlined", symbol != nullptr && symbol->inline_depth != 0}};
}

// Calls use(address, symbol or nullptr, whether another function may be inlined there) leaf first,
// until it returns false; for kMaxFrames at most.
template <class Use>
void walk(const Run& run, std::uint32_t stack, Leaf leaf, Use use) {
  if (stack == kNoIndex) return;
  const auto& trace = run.trace();
  const analysis::Range range = trace.stacks.ranges[stack];
  std::size_t left = kMaxFrames;
  for (std::uint32_t i = range.first; i < range.last && left != 0; ++i) {
    const std::uint64_t address = trace.stacks.frames[i];
    const bool is_return = i != range.first || leaf == Leaf::kReturn;
    const analysis::OwnSymbols own =
        analysis::own_symbols(trace, trace.stacks.runs[stack], address, is_return, left);
    const auto& symbols = own.symbols;
    if (symbols.empty() && !use(address, static_cast<const analysis::Symbol*>(nullptr), false)) {
      return;
    }
    for (const auto& symbol : symbols) {
      if (!use(address, &symbol, own.is_behind_call && symbol.inline_depth != 0)) return;
    }
    left -= std::max<std::size_t>(symbols.size(), 1);
  }
}

std::string name_of(const Run& run, std::uint64_t address, const analysis::Symbol* symbol) {
  if (symbol == nullptr || symbol->name == analysis::kNoName) return address_text(address);
  return shortened(run.trace().names.text(symbol->name));
}

bool is_machinery(std::string_view name) {
  for (const std::string_view prefix : {"core::", "alloc::", "std::", "tokio::", "dial9", "<core::",
                                        "<alloc::", "<std::", "<tokio::", "boost::", "asio::"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// What a sample or dump shares: title, moment, the stack.
json details(const char* what, std::string title, std::uint32_t index, double at_ns, json lane,
             json task, json facts, json frames) {
  return {{"what", what},
          {"title", std::move(title)},
          {"index", index},
          {"at_ns", at_ns},
          {"dur_ns", nullptr},
          {"lane", std::move(lane)},
          {"task", std::move(task)},
          {"facts", std::move(facts)},
          {"frames", std::move(frames)}};
}

const analysis::SampleRow& row_of(const analysis::Trace& trace, std::uint32_t sample) {
  std::size_t low = 0;
  std::size_t high = trace.sample_rows.size();
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (trace.sample_rows[middle].samples.first <= sample ? low : high) = middle;
  }
  return trace.sample_rows[low];
}

}  // namespace

json frames_json(const Run& run, std::uint32_t stack, Leaf leaf) {
  json out = json::array();
  walk(run, stack, leaf, [&](std::uint64_t address, const analysis::Symbol* symbol, bool) {
    out.push_back(frame_json(run, address, symbol));
    return true;
  });
  return out;
}

std::string stack_text(const Run& run, std::uint32_t stack) {
  std::string out;
  std::uint32_t shown = 0;
  walk(run, stack, Leaf::kInterrupted, [&](std::uint64_t address, const auto* symbol, bool maybe) {
    if (maybe) return true;
    if (shown == kShortFrames) {
      out += " < …";
      return false;
    }
    out += (shown++ == 0 ? "" : " < ") + name_of(run, address, symbol);
    return true;
  });
  return out;
}

std::string leaf_text(const Run& run, std::uint32_t stack) {
  std::string leaf;
  std::string own;
  walk(run, stack, Leaf::kInterrupted, [&](std::uint64_t address, const auto* symbol, bool maybe) {
    if (maybe) return true;
    const std::string name = name_of(run, address, symbol);
    if (leaf.empty()) leaf = name;
    if (!is_machinery(name)) own = name;
    return own.empty();
  });
  return own.empty() ? leaf : own;
}

namespace {

template <class Sample>
std::string stack_fact(const Sample& sample) {
  return sample.stack == kNoIndex ? "not recorded"
                                  : analysis::unwound_fact(sample.unwound, sample.is_truncated);
}

void tell_names(const Run& run, std::uint32_t stack, Leaf leaf, Facts& facts) {
  if (analysis::has_symbols_behind_calls(run.trace(), stack, leaf)) {
    facts.text("Callers",
               "named by the code that each call returns to: inlined functions and lines of "
               "callers may be others");
  }
}

}  // namespace

json sample_json(const Run& run, std::uint32_t index) {
  const auto& trace = run.trace();
  const analysis::CpuSample& sample = trace.samples[index];
  const analysis::SampleRow& row = row_of(trace, index);
  const bool is_cpu = sample.source == analysis::SampleSource::kCpu;
  Facts facts(run);
  facts.text("Why", is_cpu ? "a tick of the CPU clock: it was running here"
                           : "a context switch: it left the CPU here");
  facts.text("Thread", std::to_string(sample.tid));
  facts.text("Name", trace.names.text(sample.thread_name));
  if (sample.weight != 1) facts.count("Stands for ticks", sample.weight);
  if (row.lane != kNoIndex) {
    const std::uint32_t poll = trace.poll_at(row.lane, sample.at_ns);
    if (poll == kNoIndex) {
      facts.text("Poll", sample.task_id == 0 ? "none: between polls" : "none was recorded");
    } else {
      facts.moment("Poll since", trace.polls.start_ns[poll]);
      facts.duration("Poll's length", trace.polls.duration_ns(poll));
    }
  }
  const bool has_task = sample.task_id != 0 && sample.task_id != analysis::kUnknownId;
  if (sample.is_owner_joined && has_task) {
    facts.text("Task and span", sample.span_id == analysis::kUnknownId
                                    ? "the task of the poll that it lies in; span not known"
                                    : "those of the poll that it lies in");
  }
  facts.text("Stack", stack_fact(sample));
  tell_names(run, sample.stack, Leaf::kInterrupted, facts);
  return details("sample", is_cpu ? "CPU sample" : "Context switch", index,
                 run.relative(sample.at_ns), row.lane == kNoIndex ? json() : json(row.lane),
                 has_task ? json(std::to_string(sample.task_id)) : json(), facts.take(),
                 frames_json(run, sample.stack));
}

json wait_json(const Run& run, std::uint32_t index) {
  const auto& trace = run.trace();
  const analysis::OffCpuWait& wait = trace.off_cpu[index];
  Facts facts(run);
  facts.text("Waited in", trace.names.text(wait.call));
  facts.text("Reason", wait.is_preempted                 ? "it waited for a CPU"
                       : wait.is_parked                  ? "a worker without work"
                       : wait.cause == analysis::kNoName ? "not known"
                                                         : trace.names.text(wait.cause));
  facts.duration("Proven", wait.proven_ns);
  facts.duration("Estimated around it", wait.share_ns);
  if (wait.is_exact) facts.text("Known", "from switch to switch");
  if (wait.runnable_ns != 0) facts.duration("Then waited for a CPU", wait.runnable_ns);
  if (wait.is_continued) facts.text("Part", "of the wait of this thread before it");
  facts.text("Thread", std::to_string(wait.tid));
  facts.text("Name", trace.names.text(wait.thread_name));
  if (wait.label_name != analysis::kNoName) {
    facts.text("Label", std::string(trace.names.text(wait.label_name)) + "=" +
                            std::string(trace.names.text(wait.label_value)));
  }
  facts.text("Stack", stack_fact(wait));
  tell_names(run, wait.stack, analysis::leaf_of(wait), facts);
  const bool has_task = wait.task_id != 0 && wait.task_id != analysis::kUnknownId;
  json out = details("offcpu", "Wait off the CPU", index, run.relative(wait.at_ns),
                     wait.lane == kNoIndex ? json() : json(wait.lane),
                     has_task ? json(std::to_string(wait.task_id)) : json(), facts.take(),
                     frames_json(run, wait.stack, analysis::leaf_of(wait)));
  out["dur_ns"] = wait.proven_ns;
  return out;
}

json dump_json(const Run& run, std::uint32_t index) {
  const auto& trace = run.trace();
  const analysis::TaskDump& dump = trace.dumps[index];
  Facts facts(run);
  facts.text("Meaning", "the task was suspended here, waiting at");
  facts.text("Waiting at", leaf_text(run, dump.stack));
  if (dump.stack == kNoIndex) facts.text("Stack", "not recorded");
  tell_names(run, dump.stack, Leaf::kInterrupted, facts);
  return details("dump", "Suspended task", index, run.relative(dump.at_ns), nullptr,
                 std::to_string(trace.tasks.id[dump.task]), facts.take(),
                 frames_json(run, dump.stack));
}

}  // namespace dial9::server
