// See doctor_checks.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_checks.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "analysis/human.h"
#include "analysis/json_text.h"

namespace dial9::cli {
namespace {

using analysis::counted;
using analysis::human_bytes;
using analysis::human_count;
using analysis::human_duration;

constexpr std::uint64_t kClockBoundNs = 1'000;
// Lock, segment, kernel files of sources, and room for the host.
constexpr std::uint64_t kLeastOpenFiles = 256;
constexpr std::uint64_t kLeastQueuedSignals = 256;
constexpr std::uint64_t kLeastLockedBytes = 512 << 10;  // a perf ring
// The compiler leaves some functions without a frame whatever it is told; these shares tell a
// program with frame pointers from one with parts that have none, and from one without.
constexpr double kFramedShare = 0.7;
constexpr std::uint64_t kLeastFunctions = 20;

Check make(std::string name, std::string expected) {
  Check check;
  check.name = std::move(name);
  check.expected = std::move(expected);
  return check;
}

Check& judge(Check& check, Verdict verdict, std::string seen, std::string cure = {}) {
  check.verdict = verdict;
  check.seen = std::move(seen);
  check.cure = std::move(cure);
  return check;
}

std::string limit_text(std::uint64_t limit) {
  return limit == kNoLimit ? "no limit" : human_bytes(limit);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

// The first two numbers of "6.1.0-18-amd64" as 6001; 0: not understood.
std::uint32_t release_number(std::string_view release) {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return 0;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return 0;
  return major * 1'000 + minor;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kWrong:
      return "wrong";
  }
  return "unknown";
}

Check check_environment(const EnvironmentFacts& facts) {
  Check check = make("environment", "DIAL9_ENABLED is on, every DIAL9_ variable has an effect");
  if (!facts.messages.empty()) {
    return judge(
        check, Verdict::kWrong, joined(facts.messages),
        "correct or remove these variables; docs/spec/events.md, \"Environment\", has all");
  }
  if (!facts.is_enabled) {
    return judge(check, Verdict::kWarning, "DIAL9_ENABLED is off or not set",
                 "set DIAL9_ENABLED=1 where the service uses recorder_from_env(); "
                 "Recorder::start() needs no variable");
  }
  return judge(check, Verdict::kOk, "DIAL9_ENABLED is on, all variables are understood");
}

Check check_kernel(const KernelFacts& facts) {
  Check check = make("kernel", "Linux 3.17 or newer (memfd_create, getrandom)");
  const std::string seen = facts.system + " " + facts.release + " on " + facts.machine;
  const std::uint32_t number = release_number(facts.release);
  if (facts.system != "Linux") return judge(check, Verdict::kWrong, seen, "run it on Linux");
  if (number == 0) return judge(check, Verdict::kUnknown, seen);
  if (number < 3'017) return judge(check, Verdict::kWrong, seen, "use a newer kernel");
  return judge(check, Verdict::kOk, seen);
}

Check check_clock(const ClockFacts& facts) {
  Check check =
      make("clock", "within " + human_duration(kClockBoundNs) +
                        " of CLOCK_MONOTONIC, never backwards, from the time-stamp counter");
  if (!facts.error.empty()) return judge(check, Verdict::kUnknown, facts.error);
  if (facts.readings == 0) return judge(check, Verdict::kUnknown, "no reading was taken");
  const std::string seen = facts.description + "; at worst " +
                           human_duration(facts.worst_error_ns) + " off in " +
                           counted(facts.readings, "reading") + ", " +
                           counted(facts.backward_steps, "step") + " backwards";
  if (facts.backward_steps != 0) {
    return judge(check, Verdict::kWrong, seen, "set DIAL9_CLOCK=kernel and report this");
  }
  if (facts.worst_error_ns > kClockBoundNs) {
    return judge(check, Verdict::kWarning, seen,
                 "run it again: a clock that is being corrected (NTP) is off by the correction; "
                 "if it stays, set DIAL9_CLOCK=kernel");
  }
  if (facts.is_tsc_asked_for && facts.description != "tsc") {
    return judge(check, Verdict::kWrong, seen,
                 "DIAL9_CLOCK=tsc can't be had on this machine; leave it out");
  }
  if (facts.description != "tsc") {
    return judge(check, Verdict::kOk, seen,
                 "events cost about 15 ns more each with the kernel's clock");
  }
  return judge(check, Verdict::kOk, seen);
}

Check check_directory(const DirectoryFacts& facts) {
  Check check = make("directory",
                     "a local directory in which files can be made, written, synced, "
                     "renamed and removed");
  if (facts.is_memory) {
    return judge(check, Verdict::kOk, "none: segments stay in memory (DIAL9_MEMORY_RING)");
  }
  if (!facts.error.empty()) {
    const std::string other = "give another directory: --dir or DIAL9_TRACE_DIR";
    const char* cure = facts.error_number == ENOSPC || facts.error_number == EDQUOT
                           ? "free space there (or inodes, or quota), or "
                       : facts.error_number == EROFS ? "mount it for writing, or "
                                                     : "let this user write there, or ";
    return judge(check, Verdict::kWrong, facts.error, cure + other);
  }
  const std::string seen = facts.path + " on " + facts.file_system;
  if (facts.is_remote) {
    return judge(check, Verdict::kWarning, seen,
                 "thread buffers on a remote file system stall with it: use a local disk or tmpfs");
  }
  return judge(check, Verdict::kOk, seen);
}

Check check_space(const SpaceFacts& facts) {
  Check check = make("space", (facts.is_memory ? "memory for the budget of " : "room for ") +
                                  human_bytes(facts.budget_bytes) +
                                  (facts.is_memory ? " and the thread buffers" : " (the budget)"));
  if (!facts.error.empty()) return judge(check, Verdict::kUnknown, facts.error);
  const std::uint64_t held = std::min(facts.held_bytes, facts.budget_bytes);
  const std::uint64_t needed =
      facts.budget_bytes - held + (facts.is_memory ? facts.arena_bytes : 0);
  std::string seen = human_bytes(facts.available_bytes) + " free";
  if (held != 0) seen += ", " + human_bytes(facts.held_bytes) + " held by earlier runs";
  if (facts.available_bytes < needed) {
    return judge(check, Verdict::kWrong, seen,
                 facts.is_memory ? "lower DIAL9_MAX_DISK_USAGE_MB (the ring's budget) or give the "
                                   "process more memory"
                                 : "free " + human_bytes(needed - facts.available_bytes) +
                                       ", or lower DIAL9_MAX_DISK_USAGE_MB");
  }
  return judge(check, Verdict::kOk, seen);
}

Check check_lock(const LockFacts& facts) {
  Check check = make("lock", "a second holder of a run's lock is refused");
  if (facts.is_memory) return judge(check, Verdict::kOk, "no directory, no lock");
  if (!facts.error.empty()) return judge(check, Verdict::kUnknown, facts.error);
  std::string others;
  for (const std::uint32_t pid : facts.live_pids) {
    others += (others.empty() ? " " : ", ") +
              (pid == 0 ? "one of another container" : std::to_string(pid));
  }
  if (!facts.is_exclusive) {
    return judge(check, Verdict::kWrong, "the lock was granted twice",
                 "flock() has no effect on this file system: use a local one");
  }
  if (others.empty() && !facts.knows_others) {
    return judge(check, Verdict::kUnknown,
                 "refused; whether other recorders write here can't be told: /proc/locks doesn't "
                 "show the locks of this file system",
                 "look for processes that record here yourself: each has a budget of its own");
  }
  return judge(check, Verdict::kOk,
               others.empty() ? "refused; no other recorder writes here"
                              : "refused; these processes record here, each with a budget of its "
                                "own:" +
                                    others);
}

Check check_recording(const RecordingFacts& facts) {
  Check check = make("recording", "");
  bool is_right = facts.dropped == 0 && facts.unfinished.empty();
  for (const PartCount& part : facts.parts) {
    is_right &= part.is_minimum ? part.seen >= part.expected : part.seen == part.expected;
    check.expected += part.part + (part.is_minimum ? " >= " : " ") + human_count(part.expected);
    check.expected += ", ";
    check.seen += part.part + " " + human_count(part.seen) + ", ";
  }
  check.expected += "dropped 0";
  check.seen += "dropped " + human_count(facts.dropped);
  if (!facts.unfinished.empty()) check.seen += "; unfinished: " + facts.unfinished;
  if (!facts.error.empty()) {
    return judge(check, Verdict::kWrong, facts.error, "the message says what is in the way");
  }
  if (facts.parts.empty()) return judge(check, Verdict::kUnknown, "nothing was recorded");
  if (!is_right) {
    return judge(check, Verdict::kWrong, check.seen,
                 !facts.unfinished.empty() ? "what is unfinished says what is in the way"
                 : facts.dropped != 0
                     ? "the disk or the machine is too slow at this moment: run it "
                       "again; `dial9 info` names the cause of each drop"
                     : "report this: it is a fault of the recorder");
  }
  return check;
}

std::vector<Check> check_limits(const LimitFacts& facts) {
  std::vector<Check> checks;
  Check files = make("limit: open files", human_count(kLeastOpenFiles) + " or more");
  judge(
      files, facts.open_files < kLeastOpenFiles ? Verdict::kWarning : Verdict::kOk,
      facts.open_files == kNoLimit ? "no limit" : human_count(facts.open_files),
      facts.open_files < kLeastOpenFiles
          ? "raise it (ulimit -n, LimitNOFILE=): recording keeps 2 descriptors, its sources more, "
            "and below 64 they stay off"
          : "");
  checks.push_back(files);
  Check size = make("limit: file size", human_bytes(facts.needed_file_bytes) +
                                            " or more (a segment; the thread buffers)");
  const bool is_small = facts.file_bytes < facts.needed_file_bytes;
  judge(size, is_small ? Verdict::kWrong : Verdict::kOk, limit_text(facts.file_bytes),
        is_small ? "raise it (ulimit -f, LimitFSIZE=) or lower DIAL9_MAX_FILE_SIZE_MB and "
                   "DIAL9_ARENA_MB: what doesn't fit is dropped and counted, and thread "
                   "buffers without a file don't survive a kill"
                 : "");
  checks.push_back(size);
  Check address = make("limit: address space",
                       human_bytes(facts.needed_address_bytes) + " for the recorder, or more");
  const bool is_tight = facts.address_bytes < facts.needed_address_bytes;
  judge(address, is_tight ? Verdict::kWrong : Verdict::kOk, limit_text(facts.address_bytes),
        is_tight ? "raise it (ulimit -v, LimitAS=) or lower DIAL9_ARENA_MB" : "");
  checks.push_back(address);
  Check locked =
      make("limit: locked memory", human_bytes(kLeastLockedBytes) + " or more (for perf)");
  const bool is_low = facts.locked_bytes < kLeastLockedBytes;
  judge(locked, is_low ? Verdict::kWarning : Verdict::kOk, limit_text(facts.locked_bytes),
        is_low ? "raise it (ulimit -l, LimitMEMLOCK=): perf's rings count as locked memory" : "");
  checks.push_back(locked);
  Check queued = make("limit: queued signals",
                      human_count(kLeastQueuedSignals) + " or more (for CPU samples by timers)");
  const bool is_short = facts.queued_signals < kLeastQueuedSignals;
  judge(queued, is_short ? Verdict::kWarning : Verdict::kOk,
        facts.queued_signals == kNoLimit ? "no limit" : human_count(facts.queued_signals),
        is_short
            ? "raise it (ulimit -i, LimitSIGPENDING=): each thread's timer takes one, and half "
              "of what the user's processes leave is used"
            : "");
  checks.push_back(queued);
  return checks;
}

Check check_sched(const SchedFacts& facts) {
  Check check = make("scheduler numbers", "/proc/self/task/TID/schedstat can be read and moves");
  const char* cure =
      "events lack run-queue waits without it: a kernel with CONFIG_SCHED_INFO, /proc mounted";
  if (!facts.error.empty()) return judge(check, Verdict::kWarning, facts.error, cure);
  if (facts.run_ns == 0) return judge(check, Verdict::kWarning, "it stays at 0", cure);
  return judge(check, Verdict::kOk, human_duration(facts.run_ns) + " on a CPU so far");
}

Check check_perf(const PerfFacts& facts) {
  Check check = make("perf", "perf_event_open works for the own process; kernel.kptr_restrict 0");
  std::string seen = facts.open_error != 0
                         ? "refused: " + std::string(std::strerror(facts.open_error))
                     : facts.has_counted ? "it opens and counts"
                                         : "it opens, but counts nothing";
  const auto setting = [&](const char* name, const std::optional<int>& value) {
    seen += std::string(", ") + name + " " + (value ? std::to_string(*value) : "not there");
  };
  setting("perf_event_paranoid", facts.paranoid);
  setting("kptr_restrict", facts.kptr_restrict);
  if (facts.open_error == EACCES || facts.open_error == EPERM) {
    return judge(check, Verdict::kWarning, seen,
                 "sysctl kernel.perf_event_paranoid=1 (or CAP_PERFMON); in a container also allow "
                 "perf_event_open in its seccomp profile");
  }
  if (facts.open_error != 0 || !facts.has_counted) {
    return judge(
        check, Verdict::kWarning, seen,
        "this kernel or machine has no perf events: other tools can't sample the CPU here");
  }
  if (facts.kptr_restrict.value_or(0) != 0) {
    return judge(check, Verdict::kWarning, seen,
                 "sysctl kernel.kptr_restrict=0, else kernel frames have no names");
  }
  return judge(check, Verdict::kOk, seen);
}

std::vector<Check> check_program(const ProgramFacts& facts) {
  Check frames = make("frame pointers", "most functions set one up");
  Check debug = make("debug info", "in the program, or in a separate file");
  Check id = make("build id", "there is one");
  if (!facts.error.empty()) {
    for (Check* check : {&frames, &debug, &id}) judge(*check, Verdict::kUnknown, facts.error);
    return {frames, debug, id};
  }
  const ElfFacts& elf = facts.elf;
  const double share = elf.functions == 0 ? 0
                                          : static_cast<double>(elf.framed_functions) /
                                                static_cast<double>(elf.functions);
  if (!elf.can_judge_frames || elf.functions < kLeastFunctions) {
    judge(frames, Verdict::kUnknown,
          elf.can_judge_frames ? "only " + counted(elf.functions, "function") + " can be looked at"
                               : "code of this machine isn't known",
          elf.has_symbols ? "" : "look at the program before it is stripped");
  } else {
    const std::string seen = analysis::human_share(share) + " of " +
                             counted(elf.functions, "function") + " of " + facts.path;
    const bool is_framed = share >= kFramedShare;
    judge(frames, is_framed ? Verdict::kOk : Verdict::kWarning, seen,
          is_framed ? "" : "compile with -fno-omit-frame-pointer: profilers lose callers without");
  }
  if (elf.has_debug_info) {
    judge(debug, Verdict::kOk, "in " + facts.path);
  } else if (!facts.separate_debug_file.empty()) {
    judge(debug, Verdict::kOk, facts.separate_debug_file);
  } else {
    judge(debug, Verdict::kWarning,
          std::string("none") + (elf.has_symbols ? ", but symbols" : ", and no symbols"),
          "compile with -g (or keep the file that was split off): names have no lines without");
  }
  if (elf.build_id.empty()) {
    judge(id, Verdict::kWarning, "none",
          "link with -Wl,--build-id: traces can't name the exact program without");
  } else {
    judge(id, Verdict::kOk, elf.build_id);
  }
  return {frames, debug, id};
}

VerdictCounts count_verdicts(const std::vector<Check>& checks) {
  VerdictCounts counts;
  for (const Check& check : checks) {
    counts.wrong += check.verdict == Verdict::kWrong ? 1 : 0;
    counts.warnings += check.verdict == Verdict::kWarning ? 1 : 0;
    counts.unknown += check.verdict == Verdict::kUnknown ? 1 : 0;
  }
  return counts;
}

std::string doctor_text(const std::vector<Check>& checks) {
  std::string out;
  for (const Check& check : checks) {
    std::string verdict(to_string(check.verdict));
    verdict.resize(9, ' ');
    out += verdict + check.name + "\n";
    out += "         expected  " + check.expected + "\n";
    out += "         seen      " + check.seen + "\n";
    if (!check.cure.empty()) out += "         cure      " + check.cure + "\n";
  }
  const VerdictCounts counts = count_verdicts(checks);
  out += "\n" + counted(checks.size(), "check") + ": " + human_count(counts.wrong) + " wrong, " +
         counted(counts.warnings, "warning") + ", " + human_count(counts.unknown) + " unknown\n";
  return out;
}

std::string doctor_json(const std::vector<Check>& checks) {
  const VerdictCounts counts = count_verdicts(checks);
  std::string out = "{\"wrong\": " + std::to_string(counts.wrong) +
                    ", \"warnings\": " + std::to_string(counts.warnings) +
                    ", \"unknown\": " + std::to_string(counts.unknown) + ", \"checks\": [";
  bool is_first = true;
  for (const Check& check : checks) {
    out += is_first ? "\n" : ",\n";
    is_first = false;
    const auto field = [&](const char* key, std::string_view value, const char* before) {
      out += std::string(before) + "\"" + key + "\": ";
      analysis::append_json_string(out, value);
    };
    field("name", check.name, "  {");
    field("verdict", to_string(check.verdict), ", ");
    field("expected", check.expected, ", ");
    field("seen", check.seen, ", ");
    field("cure", check.cure, ", ");
    out += "}";
  }
  return out + "\n]}\n";
}

}  // namespace dial9::cli
