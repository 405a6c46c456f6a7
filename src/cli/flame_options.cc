// See flame_options.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flame_options.h"

#include <cstdio>
#include <cstdlib>

#include "analysis/counts.h"
#include "analysis/json_text.h"
#include "cli/arguments.h"
#include "cli/durations.h"
#include "cli/ids.h"
#include "cli/output.h"

namespace dial9::cli {
namespace {

std::string check_worker(const std::string& text) {
  const auto id = to_id(text);
  return id && *id <= ~std::uint32_t{0} ? "" : "'" + text + "' is no worker: give its number";
}

// Empty: the environment doesn't say where.
std::string cache_folder(const std::string& of) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/dial9/" + of;
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/dial9/" + of;
  return "";
}

std::string servers() {
  const char* const urls = std::getenv("DEBUGINFOD_URLS");
  return urls == nullptr ? "" : urls;
}

bool asks_servers(const FlameOptions& options) {
  return options.asks_debuginfod && !servers().empty() && !cache_folder("debuginfod").empty();
}

symbolize::SymbolizerOptions symbolizer_options(const FlameOptions& options) {
  const std::vector<std::string> command = {"/proc/self/exe", kDwarfWorkerArgument};
  symbolize::SymbolizerOptions given;
  given.directories = options.symbol_paths;
  given.dwarf.command = command;
  given.cache.directory = options.has_cache ? cache_folder("symbols") : "";
  given.wants_lines = options.by_line;
  given.debuginfod.command = command;
  given.debuginfod.urls = asks_servers(options) ? servers() : "";
  given.debuginfod.directory = cache_folder("debuginfod");
  given.debuginfod.shows_progress = true;
  return given;
}

}  // namespace

void add_filter_options(Verb& verb, FilterOptions& options) {
  verb.duration("--from", options.from, "Only from this time after the trace's start, as 1.5s");
  verb.duration("--to", options.to, "Only up to this time after the trace's start");
  verb.text("--worker", options.worker, "Only on this worker").check(check_worker);
  verb.text("--thread", options.thread, "Only of this thread: its name or its id");
  verb.text("--task", options.task, "Only of this task").check(check_id);
  verb.text("--span", options.span, "Only in this span, or in one inside it").check(check_id);
  verb.text("--label", options.label, "Only with this label: NAME=VALUE, or NAME");
}

analysis::SampleFilter filter_of(const FilterOptions& options, const analysis::Trace& trace) {
  analysis::SampleFilter filter;
  if (!options.from.empty()) {
    filter.from_ns = analysis::sum_of(trace.begin_ns, parse_duration(options.from).value_or(0));
  }
  if (!options.to.empty()) {
    filter.to_ns = analysis::sum_of(trace.begin_ns, parse_duration(options.to).value_or(0));
  }
  if (!options.worker.empty()) {
    filter.worker = static_cast<std::uint32_t>(to_id(options.worker).value_or(0));
  }
  if (!options.task.empty()) filter.task = to_id(options.task);
  if (!options.span.empty()) filter.span = to_id(options.span);
  filter.thread = options.thread;
  filter.label = options.label;
  return filter;
}

void add_flame_options(Verb& verb, FlameOptions& options) {
  verb.text("--format", options.format,
            "text: functions by weight; folded: \"root;...;leaf weight\" a line a stack; svg: a "
            "picture; json")
      .one_of({"text", "folded", "svg", "json"})
      .noted_in(options.is_format_given)
      .with_default_shown();
  verb.flag("--inverted", options.is_inverted, "From the leaf outwards: who called it");
  verb.text("--sort", options.sort, "Order of the functions in the text")
      .one_of({"self", "total"})
      .with_default_shown();
  verb.number("--limit", options.limit, "Functions in the text, those with most first")
      .in_range(0, kMostRows)
      .with_default_shown();
  add_lines_option(verb, options);
  add_symbol_options(verb, options);
}

void add_lines_option(Verb& verb, FlameOptions& options) {
  verb.flag("--lines", options.by_line,
            "Each line of a function that runs, or calls, is a frame of its own");
}

void add_symbol_options(Verb& verb, FlameOptions& options) {
  verb.folders("--symbol-path", options.symbol_paths,
               "Folder with binaries or debug files, looked into first; may be repeated")
      .once_each();
  verb.flag("!--no-symbol-cache", options.has_cache,
            "Neither use nor keep what was found about addresses "
            "(XDG_CACHE_HOME or ~/.cache, dial9/symbols, 128 MiB at most)");
  verb.flag("--debuginfod", options.asks_debuginfod,
            "Fetch debug files that aren't here from the servers in DEBUGINFOD_URLS (1 GiB a file, "
            "4 GiB in all, in dial9/debuginfod beside the symbol cache)");
}

FileNamer::FileNamer(const FlameOptions& options) : symbolizer_(symbolizer_options(options)) {
  if (options.asks_debuginfod && !asks_servers(options)) {
    notes_.emplace_back(
        "--debuginfod: nobody is asked; name servers in DEBUGINFOD_URLS, and a place for files in "
        "XDG_CACHE_HOME or HOME");
  }
}

std::string check_form(const FlameOptions& options, bool is_json) {
  if (!is_json || !options.is_format_given || options.format == "json") return "";
  return "--json and --format " + options.format + " exclude each other";
}

std::vector<std::string> FileNamer::notes() const {
  std::vector<std::string> notes = notes_;
  const std::vector<std::string> more = symbolizer_.notes();
  notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

std::vector<std::string> FileNamer::notes(std::string_view path, std::string_view build_id,
                                          bool with_lines) {
  std::vector<std::string> notes = notes_;
  const std::vector<std::string> more = symbolizer_.notes_of(path, build_id, with_lines);
  notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

namespace {

// Folded stacks have no room for notes.
void write_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    std::fprintf(stderr, "dial9: %s\n", analysis::to_printable(note).c_str());
  }
}

}  // namespace

void write_flame(const FlameOptions& options, bool is_json, const analysis::FlameTree& tree,
                 analysis::FlameHeading heading, const FileNamer& namer) {
  const std::vector<std::string> more = namer.notes();
  heading.notes.insert(heading.notes.end(), more.begin(), more.end());
  if (is_json || options.format == "json") {
    write_out(analysis::flame_json(tree, heading));
  } else if (options.format == "svg") {
    write_out(analysis::flame_svg(tree, heading));
  } else if (options.format == "folded") {
    write_notes(heading.notes);
    write_out(analysis::flame_folded(tree, heading.by_line));
  } else {
    write_out(analysis::flame_text(tree, heading, options.limit, options.sort == "total"));
  }
}

void write_diff(const FlameOptions& options, bool is_json, const analysis::FlameDiff& diff,
                const analysis::FlameDiffHeading& heading) {
  if (is_json || options.format == "json") {
    write_out(analysis::flame_diff_json(diff, heading));
  } else if (options.format == "svg") {
    write_out(analysis::flame_diff_svg(diff, heading));
  } else if (options.format == "folded") {
    write_notes(analysis::flame_diff_lines(diff, heading));
    write_out(analysis::flame_diff_folded(diff, heading.after.by_line));
  } else {
    write_out(analysis::flame_diff_text(diff, heading, options.limit));
  }
}

}  // namespace dial9::cli
