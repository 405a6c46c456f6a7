// `dial9 cat`: every event as a JSON line, in input order, in constant memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/census.h"
#include "analysis/json_text.h"
#include "cli/arguments.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::vector<std::string> types;
  std::uint64_t limit = ~std::uint64_t{0};
  std::string from;
  std::string to;
};

constexpr std::uint64_t kForever = ~std::uint64_t{0};

// Absolute; [from, to).
struct TimeRange {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = kForever;
  bool is_everything() const { return from_ns == 0 && to_ns == kForever; }
};

std::uint64_t after(std::uint64_t begin_ns, std::uint64_t duration_ns) {
  return duration_ns > kForever - begin_ns ? kForever : begin_ns + duration_ns;
}

class LineWriter final : public format::Visitor {
 public:
  LineWriter(const Options& options, TimeRange range) : options_(options), range_(range) {}

  void begin_input(const format::Decoder& decoder) {
    decoder_ = &decoder;
    is_wanted_.clear();
  }
  bool is_done() const { return is_done_; }
  // Event types of all inputs so far.
  const std::set<std::string>& seen() const { return seen_; }

  void on_schema(const format::Schema& schema) override {
    if (schema.index >= is_wanted_.size()) {
      is_wanted_.resize(schema.index + 1);
    }
    seen_.emplace(schema.name);
    const auto& types = options_.types;
    is_wanted_[schema.index] =
        types.empty() || std::find(types.begin(), types.end(), schema.name) != types.end();
  }

  bool on_event(const format::Event& event) override {
    const bool is_in_range = range_.is_everything() ||
                             (event.schema.has_timestamp && event.timestamp_ns >= range_.from_ns &&
                              event.timestamp_ns < range_.to_ns);
    if (!is_wanted_[event.schema.index] || !is_in_range) {
      return true;
    }
    if (written_ >= options_.limit) {
      is_done_ = true;
      return false;
    }
    ++written_;
    is_done_ = !write_out(line(event));
    return !is_done_;
  }

 private:
  const std::string& line(const format::Event& event) {
    line_ = "{\"type\":";
    analysis::append_json_string(line_, event.schema.name);
    line_ += ",\"at_ns\":";
    if (event.schema.has_timestamp) {
      analysis::append_json_number(line_, event.timestamp_ns);
    } else {
      line_ += "null";
    }
    line_ += ",\"fields\":{";
    for (std::size_t i = 0; i < event.values.size(); ++i) {
      line_ += i == 0 ? "" : ",";
      analysis::append_json_string(line_, event.schema.fields[i].name);
      line_ += ':';
      analysis::append_json_value(line_, event.values[i], *decoder_);
    }
    line_ += "}}\n";
    return line_;
  }

  const Options& options_;
  TimeRange range_;
  const format::Decoder* decoder_ = nullptr;
  std::vector<bool> is_wanted_;
  std::set<std::string> seen_;
  std::string line_;
  std::uint64_t written_ = 0;
  bool is_done_ = false;
};

// Letters to change, add or leave out, whatever their case.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t before = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = before + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      before = row[j + 1];
      row[j + 1] = std::min({replaced, before + 1, row[j] + 1});
    }
  }
  return row.back();
}

// One that may be meant: a slip of the finger, or a name in short. Empty: none is near.
std::string near_to(const std::string& type, const std::set<std::string>& types) {
  std::string best;
  std::size_t least = type.size() / 3 + 2;
  for (const std::string& known : types) {
    const bool is_part = type.size() >= 4 && known.find(type) != std::string::npos;
    const std::size_t away = is_part ? 1 : distance(type, known);
    if (away >= least) continue;
    least = away;
    best = known;
  }
  return best;
}

// False, with a word to the user, if a type that was asked for isn't in the inputs.
bool has_all_types(const std::vector<std::string>& asked, const std::set<std::string>& types) {
  bool has_all = true;
  for (const std::string& type : asked) {
    if (types.contains(type)) continue;
    has_all = false;
    const std::string near = near_to(type, types);
    std::string cure = "'dial9 info' lists the types that are";
    if (!near.empty()) cure = "did you mean '" + analysis::to_printable(near) + "'? " + cure;
    std::fprintf(stderr, "dial9: cat: no event type '%s' in the input; %s\n", type.c_str(),
                 cure.c_str());
  }
  return has_all;
}

// The start of the trace: one more pass over it.
std::uint64_t find_begin(const std::vector<Input>& inputs) {
  analysis::Census census;
  Progress progress("finding the start", inputs);
  for (const Input& input : inputs) {
    std::uint64_t events = 0;
    // Errors are told by the pass that shows the events.
    (void)decode_input(
        input, census.visitor(),
        [&](const format::Decoder& decoder) { census.begin_input(decoder); }, progress, events);
  }
  return census.begin_ns();
}

int run(const Options& options) {
  const std::string wrong = check_range("--from", options.from, "--to", options.to);
  if (!wrong.empty()) return report_usage("cat", wrong);
  const auto inputs = expand_inputs(options.paths);
  if (!inputs) {
    report_error("cat", inputs.error());
    return kUnreadable;
  }
  TimeRange range;
  if (!options.from.empty() || !options.to.empty()) {
    if (std::any_of(inputs->begin(), inputs->end(),
                    [](const Input& input) { return input.is_stdin; })) {
      std::fputs(
          "dial9: --from and --to count from the trace's start, which takes two passes; "
          "name a file instead of the standard input\n",
          stderr);
      return kUsage;
    }
    const std::uint64_t begin_ns = find_begin(*inputs);
    range = {after(begin_ns, parse_duration(options.from).value_or(0)),
             after(begin_ns, parse_duration(options.to).value_or(kForever))};
  }
  LineWriter writer(options, range);
  Outcome outcome;
  Progress progress("reading", *inputs);
  for (const Input& input : *inputs) {
    std::uint64_t events = 0;
    Result<void> result = decode_input(
        input, writer, [&](const format::Decoder& decoder) { writer.begin_input(decoder); },
        progress, events);
    if (writer.is_done()) {
      break;  // the limit, or nobody reads on
    }
    outcome.add(input.name, result, events);
  }
  flush_out();
  // A part of the input knows a part of the types.
  if (!writer.is_done() && outcome.exit_code() == kOk &&
      !has_all_types(options.types, writer.seen())) {
    return kUsage;
  }
  return outcome.exit_code();
}

}  // namespace

void add_cat(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    add_paths(verb, options.paths);
    verb.texts("--type", options.types,
               "Only events of this type; may be given again. One that the input doesn't have: "
               "exit code 2")
        .once_each();
    verb.number("--limit", options.limit, "Stop after so many events").in_range(0, kMostRows);
    verb.duration("--from", options.from, "Only from this time after the trace's start, as 1.5s");
    verb.duration("--to", options.to, "Only before this time after the trace's start");
  };
  arguments.add<Options>(
      "cat", "Every event as a JSON line: {\"type\", \"at_ns\" (monotonic), \"fields\"}", declare,
      run);
}

}  // namespace dial9::cli
