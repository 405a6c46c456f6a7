// See search_json.h.
// Strongest property: "total" counts every hit, also those beyond the limit.
// Spec: docs/spec/http_api.md, "Details".
// SPDX-License-Identifier: Apache-2.0
#include "server/search_json.h"

#include <algorithm>
#include <charconv>

#include "server/json.h"

namespace dial9::server {
namespace {


char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

class Hits {
 public:
  Hits(const Run& run, std::uint64_t limit) : run_(run), limit_(limit) {}

  void add(const char* what, std::string text, std::uint64_t at_ns, json task, json index) {
    ++total_;
    if (hits_.size() >= limit_) return;
    const auto at = run_.known_relative(at_ns);
    hits_.push_back({{"what", what},
                     {"text", std::move(text)},
                     {"at_ns", at ? json(*at) : json()},
                     {"task", std::move(task)},
                     {"index", std::move(index)}});
  }
  json take() { return {{"hits", std::move(hits_)}, {"total", total_}}; }

 private:
  const Run& run_;
  std::uint64_t limit_;
  std::uint64_t total_ = 0;
  json hits_ = json::array();
};

void add_task(const Run& run, std::uint32_t task, const char* what, Hits& hits) {
  const auto& trace = run.trace();
  const std::string id = std::to_string(trace.tasks.id[task]);
  const std::string_view loc = trace.names.text(trace.tasks.spawn_loc[task]);
  hits.add(what, "task " + id + (loc.empty() ? "" : " " + std::string(loc)),
           trace.tasks.first_ns[task], id, nullptr);
}

void find_tasks(const Run& run, std::string_view text, const std::vector<bool>& names, Hits& hits) {
  const auto& trace = run.trace();
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc{} && end == text.data() + text.size()) {
    const auto found = trace.task_by_id.find(id);
    if (found != trace.task_by_id.end()) add_task(run, found->second, "task", hits);
  }
  for (std::uint32_t task = 0; task < trace.tasks.size(); ++task) {
    if (names[trace.tasks.spawn_loc[task]]) add_task(run, task, "place", hits);
  }
}

}  // namespace

json search_json(const Run& run, std::string_view text, std::uint64_t limit) {
  const auto& trace = run.trace();
  Hits hits(run, limit);
  std::vector<bool> names(trace.names.size());
  for (analysis::NameId id = 1; id < names.size(); ++id) {
    names[id] = contains(trace.names.text(id), text);
  }
  for (std::size_t i = 0; i < trace.custom.size(); ++i) {
    const auto& table = trace.custom[i];
    if (!table.has_timestamp || table.size() == 0 || !names[table.name]) continue;
    hits.add("event", std::string(trace.names.text(table.name)), table.at_ns[0], nullptr,
             run.event_index(i, 0));
  }
  find_tasks(run, text, names, hits);
  for (std::uint32_t span = 0; span < trace.spans.size(); ++span) {
    if (!names[trace.spans.name[span]]) continue;
    hits.add("span", std::string(trace.names.text(trace.spans.name[span])),
             trace.spans.start_ns[span], nullptr, span);
  }
  return hits.take();
}

}  // namespace dial9::server
