// loss: what the recorder had to drop, by cause, and inputs that end early.
// Spec: docs/spec/findings.md, "loss".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "analysis/finders.h"
#include "analysis/human.h"
#include "analysis/report.h"
#include "analysis/segment_gaps.h"
#include "analysis/stretches.h"

namespace dial9::analysis {
namespace {

const char* cure_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kLimit:
      return "more memory (--memory), or fewer files at a time";
    case ErrorCode::kTruncated:
      return "normal for a process that was killed; else copy the file again";
    default:
      return "copy the file again; if it is like this where it was written, report it";
  }
}

constexpr double kWarningShare = 0.001;
constexpr double kCriticalShare = 0.10;

struct Cause {
  std::uint64_t count = 0;  // 0: not known
  std::uint64_t first_ns = ~std::uint64_t{0};
  std::uint64_t last_ns = 0;
  std::uint64_t records = 0;
  TimeStretches stretches;
};

std::string stretches_text(const Trace& trace, const Cause& cause) {
  return "in " + human_count(cause.records) +
         (cause.records == 1 ? " stretch from " : " stretches from ") +
         moment_text(trace, cause.first_ns) + " to " + moment_text(trace, cause.last_ns) + " (" +
         human_duration(cause.last_ns - cause.first_ns) +
         "); delays and span times that cross one are not judged";
}

Finding begin_finding(std::string_view name, const Cause& cause, std::uint64_t count) {
  Finding finding;
  finding.kind = FindingKind::kLoss;
  finding.count = count;
  finding.where = name;
  finding.at_ns = cause.first_ns;
  finding.end_ns = cause.last_ns;
  return finding;
}

Finding unknown_loss(const Trace& trace, const std::string& name, const Cause& cause) {
  Finding finding = begin_finding(name, cause, cause.records);
  finding.severity = Severity::kWarning;
  finding.message = "an unknown number of events is missing (" + name + ")";
  finding.evidence.push_back(stretches_text(trace, cause));
  finding.next =
      name == kMissingSegments
          ? "give all segments of the run; counts and times of what is here lack theirs"
      : name == kDamagedSegment
          ? "`dial9 info` names the file and the place; counts and times lack the rest of it"
          : "what `dial9 recover` said; counts of what is here are lower bounds";
  finding.score = static_cast<double>(cause.records);
  return finding;
}

// Nothing is wrong; but whoever misses something there must know why.
Finding recording_off(const Trace& trace, const Cause& cause) {
  Finding finding = begin_finding(kRecordingOff, cause, cause.records);
  finding.message = "recording was off for " + human_duration(covered_ns(cause.stretches)) +
                    "; nothing is known of that time";
  finding.evidence.push_back("first at " + moment_text(trace, cause.first_ns) + ", last until " +
                             moment_text(trace, cause.last_ns) +
                             "; delays and span times that cross it are not judged");
  finding.next = "none if that was meant; else look who calls disable(), or set DIAL9_ENABLED";
  return finding;
}

Finding counted_loss(const Trace& trace, const std::string& name, const Cause& cause) {
  Finding finding = begin_finding(name, cause, cause.count);
  const double share =
      static_cast<double>(cause.count) / static_cast<double>(trace.events + cause.count);
  if (share >= kWarningShare) {
    finding.severity = share >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
  }
  const bool is_part = trace.is_truncated();  // what lies behind may tell of more
  finding.message = (is_part ? "at least " : "") + counted(cause.count, "event", "was", "were") +
                    " dropped (" + finding.where + "), " + human_share(share) +
                    (is_part ? " of what was read" : " of all");
  finding.evidence.push_back(stretches_text(trace, cause));
  finding.next = "larger thread buffers or budget, or fewer events of the noisiest type";
  finding.score = static_cast<double>(cause.count);
  return finding;
}

}  // namespace

void find_loss(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  std::map<std::pair<NameId, bool>, Cause> causes;  // with whether their count isn't known
  for (const LossRecord& record : trace.loss) {
    Cause& cause = causes[{record.cause, record.count == 0}];
    cause.count += record.count;
    cause.first_ns = std::min(cause.first_ns, record.first_ns);
    cause.last_ns = std::max(cause.last_ns, record.last_ns);
    ++cause.records;
    cause.stretches.emplace_back(record.first_ns, record.last_ns);
  }
  for (const auto& [key, cause] : causes) {
    const std::string name(trace.names.text(key.first));
    out.push_back(name == kRecordingOff ? recording_off(trace, cause)
                  : cause.count == 0    ? unknown_loss(trace, name, cause)
                                        : counted_loss(trace, name, cause));
  }
  for (const InputFile& input : trace.inputs) {
    if (!input.error) {
      continue;
    }
    Finding finding;
    finding.kind = FindingKind::kLoss;
    finding.count = 1;
    finding.where = input.name;
    finding.message = "the input ends early: " + input.error->message;
    finding.evidence.push_back(counted(input.events, "event") + " before that " +
                               (input.events == 1 ? "was" : "were") + " kept");
    finding.next = cure_of(input.error->code);
    out.push_back(std::move(finding));
  }
}

}  // namespace dial9::analysis
