// `dial9 info`: what is in a trace, in one pass and constant memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "analysis/census.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/segment_gaps.h"
#include "base/stable_sort.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

using namespace analysis;

struct FileResult {
  std::string name;
  std::uint64_t events = 0;
  Result<void> result;
};

std::string time_text(const Census& census, std::uint64_t at_ns) {
  const auto realtime_ns = census.realtime_ns(at_ns);
  return realtime_ns ? iso_time(*realtime_ns) : std::to_string(at_ns) + " ns (no wall time known)";
}

std::vector<std::pair<std::string, std::uint64_t>> types_by_count(const Census& census) {
  std::vector<std::pair<std::string, std::uint64_t>> types;
  for (const auto& [name, count] : census.by_type()) {
    if (count != 0) {
      types.emplace_back(name, count);
    }
  }
  dial9::stable_sort(types.begin(), types.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  return types;
}

bool is_truncated(const std::vector<FileResult>& files) {
  return std::any_of(files.begin(), files.end(),
                     [](const FileResult& file) { return !file.result; });
}

std::string decimal(double value, int digits) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

double percent_of(std::uint64_t cpu_ns, const Census::Bill& bill) {
  return 100.0 * static_cast<double>(cpu_ns) / static_cast<double>(bill.elapsed_ns);
}

double mb_per_second(const Census::Bill& bill) {
  return static_cast<double>(bill.bytes) * 1e3 / static_cast<double>(bill.elapsed_ns);
}

bool has_cpu_samples(const Census& census) {
  const auto found = census.by_type().find("CpuSampleEvent");
  return found != census.by_type().end() && found->second != 0;
}

// What was left out to keep within the recorder's budget, and what recording cost.
std::string cost_text(const Census& census, const std::string& at_least) {
  std::string out;
  for (const auto& [name, shed] : census.shed()) {
    out += "left out  " + at_least + human_count(shed.shed) + " " + to_printable(name) +
           " to keep within the budget, at times all but one in " + decimal(shed.keep_one_in, 1) +
           "\n";
  }
  if (census.heap_keep_one_in() > 1) {
    out += "left out  heap samples to keep within the budget, at times all but one in " +
           decimal(census.heap_keep_one_in(), 1) + "; the rest stands for them\n";
  }
  const Census::Bill& bill = census.bill();
  if (bill.elapsed_ns != 0) {
    out += "cost      " + decimal(percent_of(bill.host_cpu_ns, bill), 2) +
           " % of a CPU in the service (estimated), " +
           decimal(percent_of(bill.collector_cpu_ns, bill), 2) + " % in the collector, " +
           decimal(mb_per_second(bill), 3) + " MB/s\n";
    if (has_cpu_samples(census)) {
      out += "          what the kernel took in the service for CPU samples isn't known\n";
    }
  }
  return out;
}

// What was counted: the whole, or, where not all could be read, null and a lower bound beside it.
std::string whole_and_least(const std::string& whole, const std::string& least,
                            const std::string& number, bool is_complete) {
  return "\"" + whole + "\": " + (is_complete ? number : "null") + ", \"" + least + "\": " + number;
}

void append_cost(std::string& out, const Census& census, bool is_complete) {
  out += "\"shed\": {";
  bool is_first = true;
  for (const auto& [name, shed] : census.shed()) {
    out += is_first ? "" : ", ";
    is_first = false;
    append_json_string(out, name);
    out += ": {" + whole_and_least("count", "at_least", std::to_string(shed.shed), is_complete) +
           ", \"most_keep_one_in\": " + decimal(shed.keep_one_in, 3) + "}";
  }
  if (census.heap_keep_one_in() > 1) {
    out += std::string(is_first ? "" : ", ") +
           "\"heap_samples\": {\"count\": null, \"at_least\": 0" +
           ", \"most_keep_one_in\": " + decimal(census.heap_keep_one_in(), 3) + "}";
  }
  const Census::Bill& bill = census.bill();
  out += "}, \"cost\": ";
  if (bill.elapsed_ns == 0) {
    out += "null";
    return;
  }
  out += "{\"host_cpu_percent\": " + decimal(percent_of(bill.host_cpu_ns, bill), 4) +
         ", \"sample_kernel_percent\": " + (has_cpu_samples(census) ? "null" : "0") +
         ", \"collector_cpu_percent\": " + decimal(percent_of(bill.collector_cpu_ns, bill), 4) +
         ", \"mb_per_second\": " + decimal(mb_per_second(bill), 6) + "}";
}

// Every number is a lower bound where something couldn't be read.
std::string head_text(const Census& census, const std::vector<FileResult>& files) {
  const std::string in_files = counted(files.size(), "file") + "\n";
  if (is_truncated(files) && census.events() == 0) {
    return "no event could be read in " + in_files;
  }
  return (is_truncated(files) ? "at least " : "") + counted(census.events(), "event") + " in " +
         counted(census.streams(), "stream") + ", " + in_files;
}

// What a recorder counts, and says at its end that it recorded.
std::string recorded_text(const Census& census, const std::string& at_least) {
  if (census.own_events() == 0) return "";
  return "recorded  " + at_least + counted(census.events() - census.own_events(), "event") +
         "; the other " + human_count(census.own_events()) +
         (census.own_events() == 1 ? " is" : " are") +
         " the recorder's own (clock, metadata, modules, lists of labels, losses, bills)\n";
}

// That no loss is recorded is none where all was read, of a writer that records each.
std::string loss_text(const Census& census, const std::vector<FileResult>& files) {
  const bool is_told = census.untold_inputs() == 0;
  if (census.has_unknown_loss() || (is_told && !is_truncated(files))) {
    return lost_text(census.lost_events(), census.has_unknown_loss());
  }
  return (census.lost_events() == 0 ? std::string("unknown")
                                    : "at least " + counted(census.lost_events(), "event")) +
         (is_truncated(files) ? ", not all could be read" : "") +
         (is_told ? "" : ", the writer doesn't tell");
}

// No loss, but a stretch of which nothing is known.
std::string off_text(const Census& census, bool is_truncated) {
  const auto losses = census.loss();
  const auto off = losses.find(std::string(kRecordingOff));
  if (off == losses.end()) return {};
  const std::string at_least = is_truncated || census.has_more_off() ? "at least " : "";
  return "off       recording was turned off for " + at_least + human_duration(census.off_ns()) +
         " in all, first at " + time_text(census, off->second.first_ns) + ", last until " +
         time_text(census, off->second.last_ns) + "\n";
}

std::string info_text(const Census& census, const std::vector<FileResult>& files) {
  std::string out = head_text(census, files);
  const std::string at_least = is_truncated(files) ? "at least " : "";
  out += recorded_text(census, at_least);
  if (census.begin_ns() != 0) {
    out += "from      " + time_text(census, census.begin_ns()) + "\n";
    out += "to        " + time_text(census, census.end_ns()) + "\n";
    out += "duration  " + at_least + human_duration(census.end_ns() - census.begin_ns()) + "\n";
  }
  out += "complete  ";
  out += is_truncated(files) ? "no, see below\n" : "yes\n";
  out += "lost      " + loss_text(census, files) + "\n";
  for (const auto& [cause, loss] : census.loss()) {
    if (cause == kRecordingOff) continue;
    const std::string count = loss.unknown == 0 ? human_count(loss.count)
                              : loss.count == 0 ? std::string("unknown number,")
                                                : "at least " + human_count(loss.count);
    out += "          " + count + " " + to_printable(cause) + ", from " +
           time_text(census, loss.first_ns) + " over " +
           human_duration(loss.last_ns - std::min(loss.first_ns, loss.last_ns)) + "\n";
  }
  out += off_text(census, is_truncated(files));
  out += cost_text(census, at_least);
  if (census.inversions() != 0) {
    out +=
        "disorder  " + at_least + counted(census.inversions(), "record") + " went back in time\n";
  }
  out += census.events() == 0 ? "" : "\nevents by type\n";
  for (const auto& [name, count] : types_by_count(census)) {
    std::string number = human_count(count);
    number.insert(0, number.size() < 14 ? 14 - number.size() : 0, ' ');
    out += number + "  " + to_printable(name) + "\n";
  }
  if (!census.metadata().empty()) {
    out += "\nmetadata\n";
  }
  for (const auto& [key, value] : census.metadata()) {
    out += "  " + to_printable(key) + " = " + to_printable(value) + "\n";
  }
  for (const FileResult& file : files) {
    if (!file.result) {
      out += "\n" + to_printable(file.name + ": " + file.result.error().message) + "\n";
    }
  }
  return out;
}

// Null: not known.
std::string known_count(const Census::Loss& loss) {
  return loss.unknown == 0 ? std::to_string(loss.count) : "null";
}

void append_pair(std::string& out, std::string_view key, std::string_view value, bool is_first) {
  out += is_first ? "" : ", ";
  append_json_string(out, key);
  out += ": ";
  append_json_string(out, value);
}

void append_files(std::string& out, const std::vector<FileResult>& files) {
  out += "\"files\": [";
  for (std::size_t i = 0; i < files.size(); ++i) {
    out += i == 0 ? "{\"name\": " : ", {\"name\": ";
    append_json_string(out, files[i].name);
    out += ", \"events\": " + std::to_string(files[i].events) + ", \"error\": ";
    if (files[i].result) {
      out += "null}";
      continue;
    }
    const Error& error = files[i].result.error();
    out += "{\"message\": ";
    append_json_string(out, error.message);
    out += ", \"offset\": " + (error.offset == kNoOffset ? "null" : std::to_string(error.offset)) +
           "}}";
  }
  out += "]";
}

// Of each cause: from the first to the last record of it, by the clock of the trace.
void append_loss_ranges(std::string& out, const Census& census) {
  bool is_first = true;
  for (const auto& [cause, loss] : census.loss()) {
    out += is_first ? "{\"cause\": " : ", {\"cause\": ";
    is_first = false;
    append_json_string(out, cause);
    out += ", \"count\": " + known_count(loss) + ", \"at_least\": " + std::to_string(loss.count) +
           ", \"first_ns\": \"" + std::to_string(loss.first_ns) + "\", \"last_ns\": \"" +
           std::to_string(loss.last_ns) + "\"}";
  }
}

// Sums over the files hold the rule of whole_and_least(); what is told by event type, cause and
// file is what was read.
std::string info_json(const Census& census, const std::vector<FileResult>& files) {
  const bool is_complete = !is_truncated(files);
  const auto counted_as = [&](const std::string& whole, const std::string& least,
                              std::uint64_t number) {
    return whole_and_least(whole, least, std::to_string(number), is_complete);
  };
  std::string out = "{\"events\": {" + counted_as("total", "at_least", census.events()) +
                    ", \"own\": " + std::to_string(census.own_events()) + ", \"by_type\": {";
  bool is_first = true;
  for (const auto& [name, count] : types_by_count(census)) {
    out += is_first ? "" : ", ";
    is_first = false;
    append_json_string(out, name);
    out += ": " + std::to_string(count);
  }
  out += "}}, " + counted_as("streams", "streams_at_least", census.streams());
  const bool has_times = census.begin_ns() != 0;
  const auto begin = has_times ? census.realtime_ns(census.begin_ns()) : std::nullopt;
  const auto end = has_times ? census.realtime_ns(census.end_ns()) : std::nullopt;
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  out +=
      ", \"time\": {\"begin\": " + (begin ? quoted(iso_time(*begin)) : "null") +
      ", \"end\": " + (end ? quoted(iso_time(*end)) : "null") +
      ", \"begin_ns\": " + (has_times ? quoted(std::to_string(census.begin_ns())) : "null") + ", " +
      (has_times
           ? counted_as("duration_ns", "duration_at_least_ns", census.end_ns() - census.begin_ns())
           : "\"duration_ns\": null, \"duration_at_least_ns\": null") +
      "}";
  out += ", \"truncated\": ";
  out += is_truncated(files) ? "true" : "false";
  const std::string at_least = std::to_string(census.lost_events());
  const bool is_known = is_complete && census.untold_inputs() == 0 && !census.has_unknown_loss();
  out += ", \"loss\": {\"total\": " + (is_known ? at_least : "null") +
         ", \"at_least\": " + at_least + ", \"by_cause\": {";
  is_first = true;
  for (const auto& [cause, loss] : census.loss()) {
    out += is_first ? "" : ", ";
    is_first = false;
    append_json_string(out, cause);
    out += ": " + known_count(loss);
  }
  out += "}, \"ranges\": [";
  append_loss_ranges(out, census);
  out += "]}, " + counted_as("inversions", "inversions_at_least", census.inversions()) +
         ", \"metadata\": {";
  is_first = true;
  for (const auto& [key, value] : census.metadata()) {
    append_pair(out, key, value, is_first);
    is_first = false;
  }
  out += "}, ";
  append_cost(out, census, is_complete);
  out += ", ";
  append_files(out, files);
  return out + "}\n";
}

struct Options {
  std::vector<std::string> paths;
  bool is_json = false;
};

int run(const Options& options) {
  const auto inputs = expand_inputs(options.paths);
  if (!inputs) {
    report_error("info", inputs.error());
    return kUnreadable;
  }
  Census census;
  Outcome outcome;
  std::vector<FileResult> files;
  {
    Progress progress("reading", *inputs);
    for (const Input& input : *inputs) {
      FileResult file;
      file.name = input.name;
      file.result = decode_input(
          input, census.visitor(),
          [&](const format::Decoder& decoder) { census.begin_input(decoder); }, progress,
          file.events);
      outcome.add(file.name, file.result, file.events);
      files.push_back(std::move(file));
    }
  }
  write_out(options.is_json ? info_json(census, files) : info_text(census, files));
  flush_out();
  return outcome.exit_code();
}

}  // namespace

void add_info(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_paths(verb, options.paths);
    verb.flag("--json", options.is_json, "JSON instead of text");
  };
  arguments.add<Options>("info", "What is in a trace: types, time, metadata, loss", declare, run);
}

}  // namespace dial9::cli
