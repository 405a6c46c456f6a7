// See compared_runs.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/compared_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "analysis/human.h"

namespace dial9::analysis {
namespace {

using Builds = std::map<std::string_view, std::set<std::string_view>>;  // of a file by its name

Builds builds_of(const Trace& trace) {
  Builds builds;
  for (const Module& module : trace.modules.all()) {
    const std::string_view path = trace.names.text(module.path);
    const std::string_view build_id = trace.names.text(module.build_id);
    if (!build_id.empty()) {
      builds[path.substr(path.rfind('/') + 1)].insert(build_id);
    }
  }
  return builds;
}

// Files that both have, but no build of it in common.
std::vector<std::string> other_builds(const Trace& before, const Trace& after) {
  const Builds old = builds_of(before);
  std::vector<std::string> names;
  for (const auto& [name, builds] : builds_of(after)) {
    const auto found = old.find(name);
    if (found != old.end() && std::none_of(builds.begin(), builds.end(), [&](std::string_view id) {
          return found->second.contains(id);
        })) {
      names.emplace_back(name);
    }
  }
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kShown ? text + " and " + counted(names.size() - kShown, "more file")
                               : text;
}

}  // namespace

bool is_same_run(const Trace& a, const Trace& b) {
  if (&a == &b) {
    return true;
  }
  const std::string_view id = a.metadata_value("boot_id");
  return !id.empty() && id == b.metadata_value("boot_id") &&
         a.metadata_value("kernel.boot_id") == b.metadata_value("kernel.boot_id");
}

OtherFilter filter_for(const SampleFilter& filter, const Trace& run, const Trace& other) {
  OtherFilter out{filter, {}};
  if (is_same_run(run, other)) {
    return out;
  }
  const auto leave_out = [&](const std::string& what) {
    out.notes.push_back("before isn't narrowed to the " + what +
                        ": its id says nothing in another run");
  };
  if (filter.task) {
    out.filter.task.reset();
    leave_out("task");
  }
  if (filter.span) {
    out.filter.span.reset();
    leave_out("span");
  }
  if (!filter.thread.empty() && !filter.has_thread_name()) {
    out.filter.thread.clear();
    leave_out("thread");
  }
  return out;
}

FlameMatch match_of(const Trace& before, const Trace& after, FrameBy by) {
  return by == FrameBy::kLine || is_same_run(before, after) ? FlameMatch::kPlace
                                                            : FlameMatch::kName;
}

std::vector<std::string> compared_notes(const Trace& before, const Trace& after) {
  std::vector<std::string> notes;
  if (is_same_run(before, after)) {
    return notes;
  }
  const std::string_view old = before.metadata_value("service");
  const std::string_view now = after.metadata_value("service");
  if (!old.empty() && !now.empty() && old != now) {
    notes.push_back("before is of another service: " + std::string(old) + ", not " +
                    std::string(now));
  }
  if (const std::vector<std::string> names = other_builds(before, after); !names.empty()) {
    notes.push_back("before is of another build of " + list_of(names) +
                    ": functions are matched by name and module");
  }
  return notes;
}

}  // namespace dial9::analysis
