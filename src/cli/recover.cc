// `dial9 recover`: makes ordinary segments of what killed processes left in their run directories.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "analysis/json_text.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "session/recover.h"

namespace dial9::cli {
namespace {

using analysis::append_json_string;
using internal::ArenaLoss;
using internal::RunReport;
using internal::RunState;
using internal::SealedLeftover;

const char* state_name(RunState state) {
  switch (state) {
    case RunState::kAlive:
      return "alive";
    case RunState::kNothing:
      return "nothing";
    case RunState::kRecovered:
      return "recovered";
    case RunState::kNotFinished:
      return "not_finished";
  }
  return "unknown";
}

// `, "key": "value"`, or null for an empty one.
void append_text(std::string& out, const char* key, const std::string& value) {
  out += std::string(", \"") + key + "\": ";
  if (value.empty()) {
    out += "null";
  } else {
    append_json_string(out, value);
  }
}

void append_number(std::string& out, const char* key, std::uint64_t value) {
  out += std::string(", \"") + key + "\": " + std::to_string(value);
}

void append_run(std::string& out, const RunReport& run) {
  out += "{\"state\": \"" + std::string(state_name(run.state)) + "\"";
  append_text(out, "path", run.path);
  append_text(out, "boot_id", run.boot_id);
  append_text(out, "pid", run.pid == 0 ? std::string() : std::to_string(run.pid));
  append_text(out, "segment", run.segment);
  out += ", \"events\": " + (run.is_resumed ? "null" : std::to_string(run.events));
  append_number(out, "damaged_events", run.damaged_events);
  out += std::string(", \"has_unknown_loss\": ") + (run.has_unknown_loss ? "true" : "false");
  out += ", \"sealed\": [";
  for (const SealedLeftover& sealed : run.sealed) {
    out += &sealed == run.sealed.data() ? "{\"name\": " : ", {\"name\": ";
    append_json_string(out, sealed.path.substr(sealed.path.rfind('/') + 1));
    append_number(out, "bytes", sealed.bytes);
    append_number(out, "cut_bytes", sealed.cut_bytes);
    out += ", \"damaged_at\": " +
           (sealed.damaged_at ? std::to_string(*sealed.damaged_at) : std::string("null"));
    out += "}";
  }
  out += "], \"lost\": {";
  for (const ArenaLoss& loss : run.lost) {
    out += &loss == run.lost.data() ? "" : ", ";
    append_json_string(out, loss.cause);
    out += ": " + std::to_string(loss.count - loss.told);
  }
  out += "}, \"problems\": [";
  for (const Error& problem : run.problems) {
    out += &problem == run.problems.data() ? "{\"message\": " : ", {\"message\": ";
    append_json_string(out, problem.message);
    out +=
        ", \"offset\": " + (problem.offset == kNoOffset ? "null" : std::to_string(problem.offset)) +
        "}";
  }
  out += "]}";
}

std::string report_json(const std::vector<RunReport>& runs) {
  std::string out = "{\"runs\": [";
  for (const RunReport& run : runs) {
    out += &run == runs.data() ? "" : ", ";
    append_run(out, run);
  }
  return out + "]}\n";
}

std::string report_text(const std::vector<RunReport>& runs) {
  std::string out;
  // Names of others can't drive the terminal.
  for (const RunReport& run : runs) out += analysis::to_printable(describe(run)) + "\n";
  const auto count = [&](RunState state) {
    return std::count_if(runs.begin(), runs.end(),
                         [&](const RunReport& run) { return run.state == state; });
  };
  if (count(RunState::kRecovered) == 0 && count(RunState::kNotFinished) == 0) {
    out += "nothing to recover\n";
  }
  return out;
}

struct Options {
  std::string directory;
  bool is_json = false;
};

int run(const Options& options) {
  const auto paths = internal::find_runs(options.directory);
  if (!paths) {
    report_error("recover", paths.error());
    return kUnreadable;
  }
  if (paths->empty()) {
    report_error("recover", Error{ErrorCode::kNotFound,
                                  "there is no run in '" + options.directory +
                                      "'; name a run's directory, or one that holds runs",
                                  kNoOffset});
    return kUnreadable;
  }
  std::vector<RunReport> runs;
  for (const std::string& path : *paths) runs.push_back(internal::recover_run(path, {}));
  write_out(options.is_json ? report_json(runs) : report_text(runs));
  flush_out();
  const bool has_trouble = std::any_of(runs.begin(), runs.end(), [](const RunReport& report) {
    return report.state == RunState::kNotFinished || !report.problems.empty();
  });
  return has_trouble ? kPartlyReadable : kOk;
}

}  // namespace

void add_recover(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    verb.path("DIR", options.directory, "A run's directory, or one that holds runs").required();
    verb.flag("--json", options.is_json, "JSON instead of text");
  };
  arguments.add<Options>(
      "recover", "Makes segments of what killed processes left; runs that live aren't touched",
      declare, run);
}

}  // namespace dial9::cli
