// What the verbs that show flame trees share: which stacks to take, how to write them, and names
// from files. Spec: docs/spec/flame.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/cpu_flame.h"
#include "analysis/flame.h"
#include "analysis/flame_diff.h"
#include "analysis/stack_names.h"
#include "symbolize/symbolizer.h"

namespace dial9::cli {

class Verb;

// As they were given; they have been checked.
struct FilterOptions {
  std::string from;
  std::string to;
  std::string worker;
  std::string thread;
  std::string task;
  std::string span;
  std::string label;
};
void add_filter_options(Verb& verb, FilterOptions& options);
analysis::SampleFilter filter_of(const FilterOptions& options, const analysis::Trace& trace);

struct FlameOptions {
  std::string format = "text";
  bool is_format_given = false;
  bool is_inverted = false;
  std::string sort = "self";
  std::uint64_t limit = 30;
  bool by_line = false;
  std::vector<std::string> symbol_paths;
  bool has_cache = true;
  bool asks_debuginfod = false;
  analysis::FrameBy frame_by() const {
    return by_line ? analysis::FrameBy::kLine : analysis::FrameBy::kFunction;
  }
};
void add_flame_options(Verb& verb, FlameOptions& options);
// Those alone that say where names and lines come from.
void add_symbol_options(Verb& verb, FlameOptions& options);
void add_lines_option(Verb& verb, FlameOptions& options);
// Why the format can't be that beside --json; empty: it can.
std::string check_form(const FlameOptions& options, bool is_json);

// What makes this program the process that reads debug information for another (dwarf_worker.h).
inline constexpr const char* kDwarfWorkerArgument = "--read-debug-information";

// Names and lines from the files of a trace's modules.
class FileNamer final : public analysis::FrameNamer {
 public:
  explicit FileNamer(const FlameOptions& options);
  std::vector<symbolize::Frame> frames(std::string_view path, std::string_view build_id,
                                       std::uint64_t address, bool is_return) override {
    return symbolizer_.frames(path, build_id, address, is_return);
  }
  void expect(std::string_view path, std::string_view build_id,
              std::span<const std::uint64_t> addresses) override {
    symbolizer_.expect(path, build_id, addresses);
  }
  std::vector<symbolize::Frame> kernel_frames(std::string_view boot_id, std::uint64_t address,
                                              bool is_return) override {
    return symbolizer_.kernel_frames(boot_id, address, is_return);
  }
  std::vector<std::string> notes() const;  // by now, on all files
  std::vector<std::string> notes(std::string_view path, std::string_view build_id,
                                 bool with_lines) override;
  std::uint64_t shortages() const override { return symbolizer_.shortages(); }

 private:
  std::vector<std::string> notes_;
  symbolize::Symbolizer symbolizer_;
};

// To the standard output, with the namer's notes. Folded stacks have no room for notes: they go to
// stderr. `is_json`: the format json.
void write_flame(const FlameOptions& options, bool is_json, const analysis::FlameTree& tree,
                 analysis::FlameHeading heading, const FileNamer& namer);

void write_diff(const FlameOptions& options, bool is_json, const analysis::FlameDiff& diff,
                const analysis::FlameDiffHeading& heading);

}  // namespace dial9::cli
