// See flame_json.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/flame_json.h"

#include <algorithm>
#include <charconv>

#include "analysis/compared_runs.h"
#include "analysis/flame_diff.h"
#include "analysis/flame_view.h"
#include "analysis/human.h"
#include "server/flame_query.h"
#include "server/json.h"

namespace dial9::server {
namespace {

using analysis::StackOf;

constexpr std::uint32_t kMostFunctions = 1'000;
constexpr std::uint64_t kMostMoments = 4'000;
constexpr std::size_t kMostNameBytes = 1'024;

std::string_view name_of(StackOf of) {
  switch (of) {
    case StackOf::kSample:
      return "sample";
    case StackOf::kWait:
      return "wait";
    case StackOf::kLockWait:
      return "lock";
    case StackOf::kAllocation:
      break;
  }
  return "allocation";
}

Response body_response(std::string body) {
  Response out;
  out.body = std::move(body);
  return out;
}

// What two trees are compared by: one run's name, or a range of it.
std::string range_text(const Call& call, const std::string& run) {
  const auto part = [&](std::string_view name, const char* word) {
    const auto text = call.query(name);
    return text ? std::string(" ") + word + " " + std::string(*text) + " ns" : "";
  };
  return run + part("before_from", "from") + part("before_to", "to");
}

}  // namespace

std::vector<symbolize::Frame> SharedNamer::frames(std::string_view path, std::string_view build_id,
                                                  std::uint64_t address, bool is_return) {
  if (inner_ == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return inner_->frames(path, build_id, address, is_return);
}

void SharedNamer::expect(std::string_view path, std::string_view build_id,
                         std::span<const std::uint64_t> addresses) {
  if (inner_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  inner_->expect(path, build_id, addresses);
}

std::vector<symbolize::Frame> SharedNamer::kernel_frames(std::string_view boot_id,
                                                         std::uint64_t address, bool is_return) {
  if (inner_ == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return inner_->kernel_frames(boot_id, address, is_return);
}

std::vector<std::string> SharedNamer::notes(std::string_view path, std::string_view build_id,
                                            bool with_lines) {
  if (inner_ == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return inner_->notes(path, build_id, with_lines);
}

std::uint64_t SharedNamer::shortages() const {
  if (inner_ == nullptr) return 0;
  const std::lock_guard lock(mutex_);
  return inner_->shortages();
}

void RequestNamer::asked(std::string_view path, std::string_view build_id) {
  if (!last_asked_.first.empty() && last_asked_.first == path && last_asked_.second == build_id) {
    return;
  }
  last_asked_ = {std::string(path), std::string(build_id)};
  asked_.insert(last_asked_);
}

std::vector<symbolize::Frame> RequestNamer::frames(std::string_view path, std::string_view build_id,
                                                   std::uint64_t address, bool is_return) {
  asked(path, build_id);
  return inner_.frames(path, build_id, address, is_return);
}

void RequestNamer::expect(std::string_view path, std::string_view build_id,
                          std::span<const std::uint64_t> addresses) {
  asked(path, build_id);
  inner_.expect(path, build_id, addresses);
}

std::vector<symbolize::Frame> RequestNamer::kernel_frames(std::string_view boot_id,
                                                          std::uint64_t address, bool is_return) {
  asked(analysis::kKernelModule, boot_id);
  return inner_.kernel_frames(boot_id, address, is_return);
}

void RequestNamer::add_notes(analysis::FlameHeading& heading) const {
  std::vector<std::string> notes;
  for (const auto& [path, build_id] : asked_) {
    for (std::string& note : inner_.notes(path, build_id, heading.by_line)) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
        notes.push_back(std::move(note));
      }
    }
  }
  const std::size_t beyond = notes.size() - std::min(notes.size(), kMostNotes);
  notes.resize(notes.size() - beyond);
  heading.notes.insert(heading.notes.end(), notes.begin(), notes.end());
  if (beyond != 0) {
    heading.notes.push_back(analysis::counted(beyond, "note") + " more on the names of functions");
  }
}

Response flame(const Call& call, const Run& run, SharedNamer& namer) {
  const auto asked = flame_call(call, run);
  if (!asked) return error_response(asked.error());
  RequestNamer names(namer);
  analysis::FlameView view = analysis::flame_view(run.trace(), asked->query, &names);
  names.add_notes(view.heading);
  const json commands = flame_commands(asked->query, run);
  return body_response(analysis::flame_json(
      view.tree, view.heading, asked->nodes, kMostFunctions,
      ",\n\"commands\": " + commands.dump(-1, ' ', false, json::error_handler_t::replace)));
}

Response flame_butterfly(const Call& call, const Run& run, SharedNamer& namer) {
  const auto asked = flame_call(call, run);
  if (!asked) return error_response(asked.error());
  const auto function = text_of(call, "function", kMostNameBytes);
  if (!function) return error_response(function.error());
  const auto module = text_of(call, "module", kMostNameBytes);
  if (!module) return error_response(module.error());
  RequestNamer names(namer);
  analysis::FlameButterfly found =
      analysis::flame_butterfly(run.trace(), asked->query, &names, *function, *module);
  names.add_notes(found.heading);
  const auto tree = [&](const analysis::FlameTree& half) {
    return analysis::flame_json(half, found.heading, asked->nodes, kMostFunctions);
  };
  return body_response("{\"callers\": " + tree(found.callers) +
                       ",\n\"callees\": " + tree(found.callees) + "}");
}

Response flame_diff(const Call& call, const Run& run, const Run& before, SharedNamer& namer) {
  const auto asked = flame_call(call, run);
  if (!asked) return error_response(asked.error());
  analysis::FlameQuery query = asked->query;
  analysis::OtherFilter other = analysis::filter_for(query.filter, run.trace(), before.trace());
  query.filter = std::move(other.filter);
  query.span_times = &before.span_times();
  if (const auto read = read_range(call, before, "before_from", "before_to", query.filter); !read) {
    return error_response(read.error());
  }
  RequestNamer after_names(namer);
  RequestNamer before_names(namer);
  analysis::FlameView after_view = analysis::flame_view(run.trace(), asked->query, &after_names);
  analysis::FlameView before_view = analysis::flame_view(before.trace(), query, &before_names);
  after_names.add_notes(after_view.heading);
  before_names.add_notes(before_view.heading);
  if (after_view.tree.unit() != before_view.tree.unit() && after_view.tree.count() != 0 &&
      before_view.tree.count() != 0) {
    return error_response(400, "bad_request",
                          "one of the runs tells the rate of its samples and the other doesn't: "
                          "their weights can't be compared");
  }
  std::vector<std::string> notes = analysis::compared_notes(before.trace(), run.trace());
  notes.insert(notes.end(), other.notes.begin(), other.notes.end());
  return body_response(analysis::flame_diff_json(
      analysis::flame_diff(before_view.tree, after_view.tree,
                           analysis::match_of(before.trace(), run.trace(), query.frames)),
      {after_view.heading, before_view.heading, range_text(call, before.name()), std::move(notes)},
      asked->nodes, kMostFunctions));
}

void name_frames(const Run& run, SharedNamer& namer, std::uint32_t stack, std::uint64_t at_ns,
                 bool is_return, json& frames) {
  if (stack == analysis::kNoIndex) return;
  const auto& trace = run.trace();
  const analysis::NameId process = trace.stacks.runs[stack];
  json named = json::array();
  std::string inlined_at;  // the address of the frame before, if that was inlined
  for (json& frame : frames) {
    std::uint64_t address = 0;
    const std::string text = frame["address"];
    std::from_chars(text.data() + 2, text.data() + text.size(), address, 16);
    // A name alone is the recorder's own; files may know more. Not of one of several frames.
    const bool is_inlined = frame["inlined"] == true;
    const bool is_bare = frame["line"].is_null() && !is_inlined && text != inlined_at;
    inlined_at = is_inlined ? text : std::string();
    const auto found = is_bare
                           ? analysis::frames_of(trace, &namer, process, at_ns, address, is_return)
                           : std::vector<symbolize::Frame>();
    for (const symbolize::Frame& at : found) {
      json one = frame;
      one["name"] = at.name.substr(0, kMostFlameTextBytes);
      one["inlined"] = at.is_inlined;
      if (at.at_line != 0) {
        one["file"] = at.at_file.substr(0, kMostFlameTextBytes);
        one["line"] = at.at_line;
      }
      named.push_back(std::move(one));
    }
    if (found.empty()) named.push_back(std::move(frame));
    is_return = true;
  }
  frames = std::move(named);
}

Response flame_moments(const Call& call, const Run& run, SharedNamer& namer) {
  const auto asked = flame_call(call, run);
  if (!asked) return error_response(asked.error());
  const auto node = call.integer("node", 0, kMostFlameNodes);
  if (!node) return error_response(node.error());
  const auto limit = call.integer("limit", 1, kMostMoments, kMostMoments);
  if (!limit) return error_response(limit.error());
  const auto found = analysis::flame_moments(run.trace(), asked->query, &namer, asked->nodes,
                                             static_cast<std::uint32_t>(*node), *limit);
  if (!found) return error_response(404, "not_found", "no such frame in this tree");
  json rows = json::array();
  for (const analysis::FlameMoment& moment : found->moments) {
    json row = {{"of", name_of(moment.of)},
                {"index", moment.index},
                {"at_ns", run.relative(moment.at_ns)},
                {"dur_ns", moment.length_ns}};
    if (moment.of == StackOf::kSample) row["sample"] = moment.index;
    rows.push_back(std::move(row));
  }
  return body_response(json{
      {"total", found->total},
      {"weight", found->weight},
      {"left_out", found->total - found->moments.size()},
      {"moments",
       std::move(rows)}}.dump());
}

}  // namespace dial9::server
