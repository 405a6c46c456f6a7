// accept-queue: connections that waited for accept() until there was no room for more. That a
// socket dropped some is counted by the kernel; that its queue was full or nearly so is seen in the
// samples. Spec: docs/spec/findings.md, "accept-queue".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/counts.h"
#include "analysis/finders.h"
#include "analysis/human.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::uint32_t kMinPending = 4;      // a shorter queue isn't "nearly full"
constexpr std::uint64_t kMinNearSamples = 5;  // for a warning
constexpr std::uint64_t kMinFullSamples = 2;  // one odd sample is info
constexpr std::uint64_t kCriticalDrops = 100;
constexpr std::uint64_t kMostGapNs = 2'000'000'000;  // a sample says nothing of longer times
constexpr std::size_t kMaxListeners = 8;

bool is_full(const AcceptSample& sample) { return sample.pending > sample.backlog; }
bool is_near(const AcceptSample& sample) {
  return sample.pending >= kMinPending &&
         std::uint64_t{sample.pending} * 5 >= std::uint64_t{sample.backlog} * 4;
}

struct Stretch {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
  bool is_open = false;
};

struct Judged {
  std::uint64_t drops = 0;
  std::uint64_t full = 0;
  std::uint64_t near = 0;  // full ones too
  std::size_t deepest = 0;
  Stretch longest;  // full or nearly so
  Stretch dropped;  // between the two samples with most drops in between
  std::uint64_t most_drops = 0;
};

Judged judge(const AcceptQueue& queue) {
  Judged judged;
  Stretch current;
  for (std::size_t i = 0; i < queue.samples.size(); ++i) {
    const AcceptSample& sample = queue.samples[i];
    judged.full += is_full(sample);
    judged.near += is_near(sample) || is_full(sample);
    if (sample.pending > queue.samples[judged.deepest].pending) {
      judged.deepest = i;
    }
    const bool goes_on = current.is_open && sample.at_ns - current.to_ns <= kMostGapNs;
    if (is_near(sample) || is_full(sample)) {
      current = {goes_on ? current.from_ns : sample.at_ns, sample.at_ns, true};
    } else {
      current.is_open = false;
    }
    if (current.is_open &&
        (judged.longest.to_ns == 0 ||
         current.to_ns - current.from_ns > judged.longest.to_ns - judged.longest.from_ns)) {
      judged.longest = current;
    }
    if (i == 0 || sample.drops == kUnknownNs) {
      continue;
    }
    const AcceptSample& before = queue.samples[i - 1];
    if (before.drops == kUnknownNs || sample.drops <= before.drops) {
      continue;
    }
    judged.drops = sum_of(judged.drops, sample.drops - before.drops);
    if (sample.drops - before.drops > judged.most_drops) {
      judged.most_drops = sample.drops - before.drops;
      judged.dropped = {before.at_ns, sample.at_ns, false};
    }
  }
  return judged;
}

// How far a counter of the network namespace rose in the trace; 0: it didn't, or isn't recorded.
std::uint64_t namespace_overflows(const Trace& trace) {
  std::uint64_t rise = 0;
  for (const EventTable& table : trace.custom) {
    if (trace.names.text(table.name) != "TcpListenCountersEvent") {
      continue;
    }
    for (std::size_t field = 0; field < table.fields.size(); ++field) {
      if (trace.names.text(table.fields[field].name) != "namespace_listen_overflows") {
        continue;
      }
      for (std::size_t row = 1; row < table.size(); ++row) {
        const Cell before = table.cell(row - 1, field);
        const Cell after = table.cell(row, field);
        if (before.type == CellType::kU64 && after.type == CellType::kU64 &&
            after.bits > before.bits) {
          rise = sum_of(rise, after.bits - before.bits);
        }
      }
    }
  }
  return rise;
}

Severity severity_of(const Judged& judged) {
  if (judged.drops != 0) {
    return judged.drops >= kCriticalDrops ? Severity::kCritical : Severity::kWarning;
  }
  const bool is_warning = judged.full >= kMinFullSamples || judged.near >= kMinNearSamples;
  return is_warning ? Severity::kWarning : Severity::kInfo;
}

std::string queue_text(const AcceptSample& sample) {
  return human_count(sample.pending) + " of " + human_count(sample.backlog);
}

Finding make_finding(const Trace& trace, const AcceptQueue& queue, const Judged& judged,
                     std::uint64_t overflows) {
  const AcceptSample& deepest = queue.samples[judged.deepest];
  Finding finding;
  finding.kind = FindingKind::kAcceptQueue;
  finding.severity = severity_of(judged);
  finding.where = std::string(trace.names.text(queue.address));
  const Stretch& when = judged.longest.to_ns != 0 ? judged.longest : judged.dropped;
  finding.at_ns = when.from_ns;
  finding.end_ns = when.to_ns;
  finding.count = judged.drops != 0 ? judged.drops : judged.near;
  finding.score = static_cast<double>(judged.drops) * 1e6 + static_cast<double>(judged.near);
  if (judged.longest.to_ns != 0) {
    finding.worst_ns = when.to_ns - when.from_ns;
  }
  const std::string state = judged.full != 0 ? "was full (" : "held up to (";
  if (judged.drops != 0) {
    finding.message = "the listener " + finding.where + " dropped " +
                      counted(judged.drops, "connection attempt") + "; its accept queue " + state +
                      queue_text(deepest) + ") in the samples";
  } else {
    finding.message = "the accept queue of " + finding.where +
                      (judged.full != 0 ? " was full (" : " was nearly full (") +
                      queue_text(deepest) + ") in " + counted(judged.near, "sample") + " of " +
                      human_count(queue.samples.size());
  }
  finding.evidence.push_back(counted(judged.full, "sample") + " full, " + human_count(judged.near) +
                             " at four fifths or more, of " + human_count(queue.samples.size()));
  if (queue.samples[0].drops == kUnknownNs) {
    finding.evidence.push_back("how many attempts this socket dropped isn't recorded");
  }
  if (overflows != 0) {
    finding.evidence.push_back("meanwhile the network namespace counted " +
                               counted(overflows, "overflow") +
                               " of accept queues, of all its processes together");
  }
  finding.next =
      "accept faster: keep long polls away from the accepting worker; then a larger backlog in "
      "listen() and net.core.somaxconn";
  return finding;
}

}  // namespace

void find_accept_queues(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  const std::uint64_t overflows = namespace_overflows(trace);
  Findings found;
  for (const AcceptQueue& queue : trace.accept_queues) {
    const Judged judged = judge(queue);
    if (judged.drops != 0 || judged.full != 0 || judged.near >= 2) {
      found.push_back(make_finding(trace, queue, judged, overflows));
    }
  }
  dial9::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.score > b.score;
  });
  if (found.size() > kMaxListeners) {
    found.erase(found.begin() + kMaxListeners, found.end());
  }
  out.insert(out.end(), found.begin(), found.end());
}

}  // namespace dial9::analysis
