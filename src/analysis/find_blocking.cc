// blocking-call: calls and locks that held a worker's thread inside a poll. strand-wait: handlers
// that waited for another handler of their strand. Spec: docs/spec/findings.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analysis/counts.h"
#include "analysis/finders.h"
#include "analysis/human.h"
#include "analysis/socket_waits.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::uint64_t kMinCount = 5;
constexpr std::uint64_t kMinTotalNs = 20'000'000;
// So many that are this long at the median are no accident of the kernel's.
constexpr std::uint64_t kSystematicCount = 20;
constexpr std::uint64_t kSystematicNs = 1'000'000;
constexpr double kCriticalShare = 0.25;  // of one worker's time
constexpr std::uint64_t kStrandFloorNs = 5'000'000;
constexpr std::uint64_t kMinStrandWaits = 10;
constexpr double kMinStrandShare = 0.05;      // of the strand's recorded waits
constexpr double kCriticalStrandWaits = 0.5;  // of the trace's length, summed over waiters
constexpr std::size_t kMaxSources = 8;

std::string address(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

struct Source {
  BlockKind kind = BlockKind::kCall;
  NameId call = kNoName;
  std::uint64_t lock = 0;
  bool operator<(const Source& other) const {
    return std::tie(kind, call, lock) < std::tie(other.kind, other.call, other.lock);
  }
};

struct Blocked {
  std::uint64_t count = 0;  // at or over the floor
  std::uint64_t total_ns = 0;
  std::uint64_t explained = 0;
  std::uint64_t worst_ns = 0;
  std::uint64_t excused = 0;                      // by the platform's stalls
  std::uint64_t taken_off_ns = 0;                 // of total_ns, for them
  std::size_t worst = ~std::size_t{0};            // block
  Distribution durations;                         // of all
  std::map<std::uint32_t, std::uint64_t> owners;  // tid: how often
  std::size_t seen = ~std::size_t{0};             // block: its longest wait off the CPU
};

// What of a poll's calls and locks is over when; a wait off the CPU inside one is the same wait.
struct Cover {
  std::uint64_t end_ns = 0;
  Source source;
};

// How long the block was, without what the platform may have added.
std::uint64_t claimed_ns(const FindContext& context, const Block& block) {
  const std::uint64_t stalled_ns = context.platform.most_ns(block.start_ns, block.end_ns());
  return block.duration_ns - std::min(block.duration_ns, stalled_ns);
}

void take(const FindContext& context, std::size_t i, Blocked& blocked) {
  const Trace& trace = context.trace;
  const Block& block = trace.blocks[i];
  const std::uint64_t claim_ns = claimed_ns(context, block);
  ++blocked.count;
  blocked.total_ns += claim_ns;
  blocked.taken_off_ns = sum_of(blocked.taken_off_ns, block.duration_ns - claim_ns);
  if (block.owner_tid != 0) {
    ++blocked.owners[block.owner_tid];
  }
  if (blocked.worst == ~std::size_t{0} || claim_ns > blocked.worst_ns) {
    blocked.worst = i;
    blocked.worst_ns = claim_ns;
  }
}

void add_excuses(const Blocked& blocked, Finding& finding) {
  if (blocked.taken_off_ns != 0) {
    finding.evidence.push_back("stalls of the platform, up to " +
                               human_duration(blocked.taken_off_ns) +
                               " of these waits, are taken off");
  }
  if (blocked.excused != 0) {
    finding.evidence.push_back(more_are(blocked.excused) +
                               " left out: the platform stalled meanwhile");
  }
}

std::string owner_text(const Trace& trace, const Blocked& blocked) {
  const auto most =
      std::max_element(blocked.owners.begin(), blocked.owners.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = "thread " + std::to_string(most->first);
  for (std::uint32_t lane = 0; lane < trace.lanes.size(); ++lane) {
    if (trace.lanes[lane].tid == most->first) {
      text += ", " + worker_text(trace, lane);
      break;
    }
  }
  return text + ", " + counted(most->second, "time");
}

std::string source_text(const Trace& trace, const Source& source) {
  switch (source.kind) {
    case BlockKind::kLock:
      return "lock " + address(source.lock);
    case BlockKind::kOffCpu:
      return source.call == kNoName ? "waiting off the CPU" : place_text(trace, source.call);
    default:
      return place_text(trace, source.call);
  }
}

// Of the C library, or an interposed function of ours before it.
bool is_wrapper(std::string_view name) {
  return name.starts_with("_") || name.starts_with("pthread_") || name.starts_with("dial9::");
}

// The innermost function of the stack that is the program's: not the call itself, nor what the C
// library wraps it in. Empty: none has a name in the trace.
std::string caller_text(const Trace& trace, const Block& block) {
  if (block.stack == kNoIndex) {
    return {};
  }
  const std::string_view call = trace.names.text(block.call);
  const Range range = trace.stacks.ranges[block.stack];
  for (std::uint32_t i = range.first; i < range.last; ++i) {
    // A return address may be that of the function behind.
    const std::uint64_t frame = trace.stacks.frames[i];
    const std::uint64_t code = i == range.first ? frame : frame - 1;
    for (const Symbol& symbol : trace.symbols.at(trace.stacks.runs[block.stack], code, 8)) {
      const std::string_view name = trace.names.text(symbol.name);
      if (!is_wrapper(name) && name != call.substr(0, call.find('('))) {
        return std::string(name);
      }
    }
  }
  return {};
}

// A call that was seen by one look alone is not known to have lasted.
std::string seen_text(const Trace& trace, const Block& block) {
  const std::string caller = caller_text(trace, block);
  return "blocked in " + place_text(trace, block.call) +
         (caller.empty() ? "" : " under " + caller) +
         (block.duration_ns == 0 ? ", seen once" : " for " + human_duration(block.duration_ns));
}

void add_seen(const Trace& trace, const Block& block, Finding& finding) {
  finding.evidence.push_back("seen: " + seen_text(trace, block));
  const SocketWait* const socket = socket_wait_in(trace, block.tid, block.start_ns, block.end_ns());
  if (socket != nullptr) {
    finding.evidence.push_back("its connection, " + human_duration(socket->waited_ns) +
                               " into it: " + socket_text(*socket));
  }
}

Finding make_finding(const FindContext& context, const Source& source, const Blocked& blocked) {
  const Trace& trace = context.trace;
  const Block& worst = trace.blocks[blocked.worst];
  Finding finding;
  finding.kind = FindingKind::kBlockingCall;
  finding.count = blocked.count;
  finding.where = source_text(trace, source);
  if (worst.poll != kNoIndex) {
    point_at_poll(trace, worst.poll, finding);
  }
  finding.worst_ns = blocked.worst_ns;
  finding.at_ns = worst.start_ns;
  finding.end_ns = worst.end_ns();
  const double share = static_cast<double>(blocked.total_ns) /
                       static_cast<double>(std::max<std::uint64_t>(trace.duration_ns(), 1));
  const bool is_systematic = blocked.count + blocked.explained >= kSystematicCount &&
                             blocked.durations.quantile(0.5) >= kSystematicNs;
  if ((blocked.count >= kMinCount && blocked.total_ns >= kMinTotalNs) || is_systematic) {
    finding.severity = share >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
  }
  finding.message =
      (source.kind == BlockKind::kLock ? "polls waited for " : "polls were blocked by ") +
      finding.where + " " + counted(blocked.count, "time") + ", up to " +
      human_duration(finding.worst_ns) + " (" + human_duration(blocked.total_ns) + " in all)";
  finding.evidence.push_back("all waits of this kind: " + spread_text(blocked.durations) +
                             " over " + human_count(blocked.durations.count()));
  finding.evidence.push_back(
      "the worst: " + task_text(trace, worst.task) + " from " +
      place_text(trace, worst.poll == kNoIndex ? kNoName : trace.polls.spawn_loc[worst.poll]) +
      " on thread " + std::to_string(worst.tid));
  if (blocked.seen != ~std::size_t{0}) {
    add_seen(trace, trace.blocks[blocked.seen], finding);
  } else if (source.kind == BlockKind::kOffCpu && source.call != kNoName) {
    add_seen(trace, worst, finding);
  }
  if (!blocked.owners.empty()) {
    finding.evidence.push_back("mostly held by " + owner_text(trace, blocked));
  }
  add_excuses(blocked, finding);
  if (blocked.explained != 0) {
    finding.evidence.push_back(more_are(blocked.explained) +
                               " left out: the kernel's run queue may explain them");
  }
  finding.next = source.kind == BlockKind::kLock
                     ? "hold the lock shorter, split it, or make it asynchronous"
                     : "use the asynchronous form, or move the call to a pool for blocking work";
  finding.score = static_cast<double>(blocked.total_ns);
  return finding;
}

void keep_worst(Findings& found, Findings& out) {
  dial9::stable_sort(found.begin(), found.end(),
                     [](const Finding& a, const Finding& b) { return a.score > b.score; });
  if (found.size() > kMaxSources) {
    found.erase(found.begin() + kMaxSources, found.end());
  }
  out.insert(out.end(), found.begin(), found.end());
}

}  // namespace

void find_blocking_calls(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  const std::uint64_t floor_ns = context.options.blocking_floor_ns;
  std::map<Source, Blocked> sources;
  std::vector<std::size_t> long_ones;
  std::unordered_map<std::uint32_t, Cover> covers;  // by poll
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    if (block.poll == kNoIndex || block.kind == BlockKind::kPreempted) {
      continue;
    }
    const Source source{block.kind, block.call, block.lock};
    Cover& cover = covers[block.poll];
    if (block.kind != BlockKind::kOffCpu) {
      cover = block.end_ns() > cover.end_ns ? Cover{block.end_ns(), source} : cover;
    } else if (block.end_ns() <= cover.end_ns) {
      std::size_t& seen = sources[cover.source].seen;
      if (block.call != kNoName &&
          (seen == ~std::size_t{0} || block.duration_ns > trace.blocks[seen].duration_ns)) {
        seen = i;
      }
      continue;
    }
    sources[source].durations.add(block.duration_ns);
    if (block.duration_ns >= floor_ns) {
      long_ones.push_back(i);
    }
  }
  // As for long polls: the kernel's wait explains away as many as it can.
  dial9::stable_sort(long_ones.begin(), long_ones.end(), [&](std::size_t a, std::size_t b) {
    return trace.blocks[a].duration_ns < trace.blocks[b].duration_ns;
  });
  KernelWaitBudget budget(trace);
  for (const std::size_t i : long_ones) {
    const Block& block = trace.blocks[i];
    Blocked& blocked = sources[{block.kind, block.call, block.lock}];
    const std::uint32_t worker = trace.lanes[trace.polls.lane[block.poll]].worker;
    const std::uint64_t end_ns = block.end_ns();
    const std::uint64_t stalled_ns = context.platform.most_ns(block.start_ns, end_ns);
    if (block.duration_ns < sum_of(floor_ns, stalled_ns)) {
      ++blocked.excused;
      continue;
    }
    const std::uint64_t over_ns = block.duration_ns - stalled_ns - floor_ns;
    if (budget.most(worker, block.start_ns, end_ns) > over_ns) {
      budget.take(worker, block.start_ns, end_ns, over_ns + 1);
      ++blocked.explained;
    } else {
      take(context, i, blocked);
    }
  }
  Findings found;
  for (const auto& [source, blocked] : sources) {
    if (blocked.count != 0) {
      found.push_back(make_finding(context, source, blocked));
    }
  }
  keep_worst(found, out);
}

void find_strand_waits(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  std::map<std::uint64_t, Blocked> strands;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    if (block.lock_kind != LockKind::kStrand) {
      continue;
    }
    Blocked& blocked = strands[block.lock];
    blocked.durations.add(block.duration_ns);
    if (claimed_ns(context, block) >= kStrandFloorNs) {
      take(context, i, blocked);
    } else if (block.duration_ns >= kStrandFloorNs) {
      ++blocked.excused;
    }
  }
  Findings found;
  for (const auto& [strand, blocked] : strands) {
    if (blocked.count == 0) {
      continue;
    }
    const Block& worst = trace.blocks[blocked.worst];
    Finding finding;
    finding.kind = FindingKind::kStrandWait;
    finding.count = blocked.count;
    finding.where = "strand " + address(strand);
    finding.worst_ns = blocked.worst_ns;
    finding.at_ns = worst.start_ns;
    finding.end_ns = worst.end_ns();
    finding.task = worst.task;
    const double share =
        static_cast<double>(blocked.count) / static_cast<double>(blocked.durations.count());
    const double sum_share = static_cast<double>(blocked.total_ns) /
                             static_cast<double>(std::max<std::uint64_t>(trace.duration_ns(), 1));
    if (blocked.count >= kMinStrandWaits && share >= kMinStrandShare) {
      finding.severity =
          sum_share >= kCriticalStrandWaits ? Severity::kCritical : Severity::kWarning;
    }
    finding.message = counted(blocked.count, "handler") + " waited over " +
                      human_duration(kStrandFloorNs) + " for " + finding.where + ", up to " +
                      human_duration(finding.worst_ns) + " (" + human_duration(blocked.total_ns) +
                      " in all)";
    finding.evidence.push_back("all waits for it: " + spread_text(blocked.durations) + " over " +
                               human_count(blocked.durations.count()));
    finding.evidence.push_back("the worst: " + task_text(trace, worst.task));
    if (!blocked.owners.empty()) {
      finding.evidence.push_back("mostly held by " + owner_text(trace, blocked));
    }
    add_excuses(blocked, finding);
    finding.next = "one strand serialises all of them: split it, or do less inside it";
    finding.score = static_cast<double>(blocked.total_ns);
    found.push_back(std::move(finding));
  }
  keep_worst(found, out);
}

}  // namespace dial9::analysis
