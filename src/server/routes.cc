// See routes.h.
// Strongest property: every index that a client sends is checked before the engine sees it.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "analysis/off_cpu.h"
#include "server/details_json.h"
#include "server/flame_query.h"
#include "server/gzip.h"
#include "server/json.h"
#include "server/lane_columns.h"
#include "server/profile_json.h"
#include "server/sample_columns.h"
#include "server/search_json.h"
#include "server/series_columns.h"
#include "server/span_columns.h"
#include "server/summary_json.h"
#include "server/task_json.h"
#include "server/window.h"

namespace dial9::server {
namespace {

constexpr std::string_view kPrefix = "/api/v1";
constexpr std::size_t kMaxRuns = 1000;
constexpr std::uint64_t kMaxHits = 500;

Response json_response(const json& body) {
  Response out;
  out.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

Response columns_response(std::string body) {
  Response out;
  out.content_type = "application/x-dial9-columns";
  out.body = std::move(body);
  return out;
}

std::optional<std::uint64_t> to_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Response not_found(const std::string& what) {
  return error_response(404, "not_found", what + " isn't in this run");
}

Response not_ready(const std::string& run) {
  return error_response(409, "not_ready",
                        "run '" + run + "' isn't loaded: POST to its 'open' first");
}

// Data of a loaded run never changes under its generation, as long as this process lives.
std::string etag_of(const RunStore& store, const Run& run) {
  return "\"g" + std::to_string(run.generation()) + "." + store.salt() + "\"";
}

using RunFunction = std::function<Response(const Call&, const Run&)>;

// Looks the run up first: 409 where it isn't ready, 304 where the client has this generation's
// reply. A reply in which names lack only for now has no ETag: the next one may have them.
RouteFunction with_run(RunStore& store, const SharedNamer& namer, RunFunction function) {
  return [&store, &namer, function = std::move(function)](const Call& call) {
    const std::shared_ptr<const Run> run = store.get(call.capture(0));
    if (!run) return not_ready(call.capture(0));
    const std::string etag = etag_of(store, *run);
    Response out;
    if (call.request().if_none_match == etag) {
      out.status = 304;
    } else {
      const std::uint64_t before = namer.shortages();
      out = function(call, *run);
      if (namer.shortages() != before) return out;
    }
    if (out.status == 200 || out.status == 304) out.etag = etag;
    return out;
  };
}

json status_json(const RunStatus& status) {
  return {{"run", status.run},
          {"state", to_string(status.state)},
          {"bytes_done", status.bytes_done},
          {"bytes_total", status.bytes_total},
          {"events", status.events},
          {"generation", status.generation},
          {"error", status.error.empty() ? json() : json(status.error)}};
}

Response status_response(const Result<RunStatus>& status) {
  return status ? json_response(status_json(*status)) : error_response(status.error());
}

Response list_response(RunStore& store) {
  const auto runs = store.list();
  if (!runs) return error_response(runs.error());
  json rows = json::array();
  for (const RunInfo& run : *runs) {
    if (rows.size() >= kMaxRuns && !run.is_base) continue;
    rows.push_back({{"run", run.id},
                    {"name", run.name},
                    {"bytes", run.bytes},
                    {"files", run.files.size()},
                    {"modified_ms", run.modified_ms},
                    {"is_live", run.is_live},
                    {"is_sealed", run.is_sealed ? json(*run.is_sealed) : json()},
                    {"is_base", run.is_base},
                    {"state", to_string(store.state(run.id))}});
  }
  const bool is_cut = runs->size() > rows.size();
  return json_response({{"root", store.root()},
                        {"runs", std::move(rows)},
                        {"total", runs->size()},
                        {"truncated", is_cut}});
}

// Rows first .. first + count - 1 of `total`, at most `most` at once.
Result<LaneRange> range_of(const Call& call, std::uint64_t total, std::uint64_t most) {
  const auto first = call.integer("first", 0, total, 0);
  if (!first) return std::unexpected(first.error());
  const std::uint64_t left = std::min(total - *first, most);
  const auto count = call.integer("count", 0, left, left);
  if (!count) return std::unexpected(count.error());
  return LaneRange{static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*count)};
}

std::optional<std::uint32_t> task_of(const Call& call, const Run& run) {
  const auto id = to_number(call.capture(1));
  if (!id) return std::nullopt;
  const auto found = run.trace().task_by_id.find(*id);
  if (found == run.trace().task_by_id.end()) return std::nullopt;
  return found->second;
}

Response lanes(const Call& call, const Run& run) {
  const auto window = window_query(call);
  if (!window) return error_response(window.error());
  const auto range = range_of(call, run.trace().lanes.size(), kMaxLanes);
  if (!range) return error_response(range.error());
  return columns_response(lane_columns(run, *window, *range));
}

Response task_lanes(const Call& call, const Run& run) {
  const auto window = window_query(call);
  if (!window) return error_response(window.error());
  const auto range = range_of(call, run.trace().lanes.size(), kMaxLanes);
  if (!range) return error_response(range.error());
  const auto task = task_of(call, run);
  if (!task) return not_found("task " + call.capture(1));
  return columns_response(task_lane_columns(run, *window, *range, *task));
}

Response spans(const Call& call, const Run& run) {
  const auto window = window_query(call);
  if (!window) return error_response(window.error());
  const auto range = range_of(call, run.trace().span_rows, kMaxSpanRows);
  if (!range) return error_response(range.error());
  return columns_response(span_columns(run, *window, range->first, range->count));
}

Response samples(const Call& call, const Run& run) {
  const auto window = window_query(call);
  if (!window) return error_response(window.error());
  const auto range = range_of(call, run.trace().sample_rows.size(), kMaxSampleRows);
  if (!range) return error_response(range.error());
  return columns_response(sample_columns(run, *window, range->first, range->count));
}

Response queues(const Call& call, const Run& run) {
  const auto window = window_query(call);
  if (!window) return error_response(window.error());
  return columns_response(queue_columns(run, *window));
}

Response events(const Call& call, const Run& run) {
  const auto window = window_query(call);
  if (!window) return error_response(window.error());
  const auto type = call.query("type");
  if (!type || run.trace().names.find(*type) == analysis::kNoName) {
    return not_found("event type '" + std::string(type.value_or("")) + "'");
  }
  return columns_response(event_columns(run, *window, *type, call.query("field").value_or("")));
}

Response minimap(const Call& call, const Run& run) {
  const auto bins = call.integer("bins", 1, kMaxBins);
  if (!bins) return error_response(bins.error());
  return columns_response(minimap_columns(run, static_cast<std::uint32_t>(*bins)));
}

Response task(const Call& call, const Run& run) {
  const auto found = task_of(call, run);
  if (!found) return not_found("task " + call.capture(1));
  const auto offset = call.integer("offset", 0, std::uint64_t{1} << 40, 0);
  if (!offset) return error_response(offset.error());
  const auto limit = call.integer("limit", 1, kMaxTaskRows, 100);
  if (!limit) return error_response(limit.error());
  return json_response(task_json(run, *found, *offset, *limit));
}

Response poll(const Call& call, const Run& run) {
  const auto index = to_number(call.capture(1));
  if (!index || *index >= run.trace().polls.size()) return not_found("poll " + call.capture(1));
  return json_response(poll_json(run, static_cast<std::uint32_t>(*index)));
}

Response span(const Call& call, const Run& run) {
  const auto index = to_number(call.capture(1));
  if (!index || *index >= run.trace().spans.size()) return not_found("span " + call.capture(1));
  return json_response(span_json(run, static_cast<std::uint32_t>(*index)));
}

Response event(const Call& call, const Run& run) {
  const auto index = to_number(call.capture(1));
  const auto ref = index ? run.event_ref(*index) : std::nullopt;
  if (!ref) return not_found("event " + call.capture(1));
  return json_response(event_json(run, *ref));
}

Response sample(const Call& call, const Run& run, SharedNamer& namer) {
  const auto index = to_number(call.capture(1));
  if (!index || *index >= run.trace().samples.size()) return not_found("sample " + call.capture(1));
  json details = sample_json(run, static_cast<std::uint32_t>(*index));
  const auto& found = run.trace().samples[*index];
  name_frames(run, namer, found.stack, found.at_ns, false, details["frames"]);
  return json_response(details);
}

Response wait(const Call& call, const Run& run, SharedNamer& namer) {
  const auto index = to_number(call.capture(1));
  if (!index || *index >= run.trace().off_cpu.size()) return not_found("wait " + call.capture(1));
  json details = wait_json(run, static_cast<std::uint32_t>(*index));
  const auto& found = run.trace().off_cpu[*index];
  name_frames(run, namer, found.stack, found.at_ns,
              analysis::leaf_of(found) == analysis::Leaf::kReturn, details["frames"]);
  return json_response(details);
}

// Another run's data has another generation: no ETag.
Response diff(RunStore& store, const Call& call, SharedNamer& namer) {
  const auto named = call.query("before_run");
  const std::string names[] = {call.capture(0), std::string(named.value_or(call.capture(0)))};
  std::shared_ptr<const Run> runs[2];
  for (std::size_t i = 0; i < 2; ++i) {
    runs[i] = store.get(names[i]);
    if (!runs[i]) return not_ready(names[i]);
  }
  return flame_diff(call, *runs[0], *runs[1], namer);
}

Response dump(const Call& call, const Run& run) {
  const auto index = to_number(call.capture(1));
  if (!index || *index >= run.trace().dumps.size()) return not_found("dump " + call.capture(1));
  return json_response(dump_json(run, static_cast<std::uint32_t>(*index)));
}

Response near(const Call& call, const Run& run) {
  const auto& trace = run.trace();
  if (trace.lanes.empty()) return not_found("a lane");
  const auto lane = call.integer("lane", 0, trace.lanes.size() - 1);
  if (!lane) return error_response(lane.error());
  const auto at = call.number("at", 0, static_cast<double>(trace.duration_ns()));
  if (!at) return error_response(at.error());
  const auto row = static_cast<std::uint32_t>(*lane);
  // The longest durations round up, beyond what 64 bits hold.
  constexpr double kBeyond = 18446744073709551616.0;  // 2^64
  const std::uint64_t from_begin_ns =
      *at < kBeyond ? std::min(static_cast<std::uint64_t>(*at), trace.duration_ns())
                    : trace.duration_ns();
  const std::uint64_t at_ns = trace.begin_ns + from_begin_ns;
  const std::uint32_t poll_there = trace.poll_at(row, at_ns);
  if (poll_there != analysis::kNoIndex) return json_response(poll_json(run, poll_there));
  const std::uint32_t park_there = trace.park_at(row, at_ns);
  if (park_there != analysis::kNoIndex) return json_response(park_json(run, park_there));
  return error_response(404, "not_found", "nothing was recorded there in this lane");
}

Response search(const Call& call, const Run& run) {
  const std::string_view text = call.query("q").value_or("");
  if (text.empty() || text.size() > 200) {
    return error_response(400, "bad_request", "parameter 'q': give 1 to 200 characters");
  }
  const auto limit = call.integer("limit", 1, kMaxHits, 50);
  if (!limit) return error_response(limit.error());
  return json_response(search_json(run, text, *limit));
}

void add_flame_routes(Router& router, RunStore& store, SharedNamer& namer) {
  using Flame = Response (*)(const Call&, const Run&, SharedNamer&);
  const std::string parameters(kFlameParameters);
  const auto get = [&](std::string_view pattern, std::string_view more, Flame make) {
    router.add(Method::kGet, pattern, parameters + std::string(more),
               with_run(store, namer, [&namer, make](const Call& call, const Run& run) {
                 return make(call, run, namer);
               }));
  };
  get("runs/{run}/flame", " inverted order", flame);
  get("runs/{run}/flame/moments", " inverted order node limit", flame_moments);
  get("runs/{run}/flame/butterfly", " function module", flame_butterfly);
  router.add(Method::kGet, "runs/{run}/flame/diff",
             parameters + " inverted before_run before_from before_to",
             [&store, &namer](const Call& call) { return diff(store, call, namer); });
}

bool is_api_path(std::string_view target) {
  return target.starts_with(kPrefix) &&
         (target.size() == kPrefix.size() || target[kPrefix.size()] == '/' ||
          target[kPrefix.size()] == '?');
}

}  // namespace

void add_routes(Router& router, RunStore& store, SharedNamer& namer) {
  const auto get = [&](std::string_view pattern, const std::string& parameters, RunFunction run) {
    router.add(Method::kGet, pattern, parameters, with_run(store, namer, std::move(run)));
  };
  router.add(Method::kGet, "runs", "", [&](const Call&) { return list_response(store); });
  router.add(Method::kGet, "runs/{run}", "",
             [&](const Call& call) { return status_response(store.status(call.capture(0))); });
  router.add(Method::kPost, "runs/{run}/open", "",
             [&](const Call& call) { return status_response(store.open(call.capture(0))); });
  router.add(Method::kPost, "runs/{run}/close", "",
             [&](const Call& call) { return status_response(store.close(call.capture(0))); });
  const std::string window(kWindowParameters);
  get("runs/{run}/summary", "",
      [](const Call&, const Run& run) { return json_response(summary_json(run)); });
  get("runs/{run}/findings", "",
      [](const Call&, const Run& run) { return json_response(findings_json(run)); });
  get("runs/{run}/lanes", window + " first count", lanes);
  get("runs/{run}/spans", window + " first count", spans);
  get("runs/{run}/samples", window + " first count", samples);
  get("runs/{run}/queues", window, queues);
  get("runs/{run}/events", window + " type field", events);
  get("runs/{run}/minimap", "bins", minimap);
  get("runs/{run}/tasks/{task}", "offset limit", task);
  get("runs/{run}/tasks/{task}/lanes", window + " first count", task_lanes);
  get("runs/{run}/polls/{index}", "", poll);
  get("runs/{run}/spans/{index}", "", span);
  get("runs/{run}/events/{index}", "", event);
  get("runs/{run}/samples/{index}", "",
      [&namer](const Call& call, const Run& run) { return sample(call, run, namer); });
  get("runs/{run}/dumps/{index}", "", dump);
  get("runs/{run}/waits/{index}", "",
      [&namer](const Call& call, const Run& run) { return wait(call, run, namer); });
  get("runs/{run}/near", "lane at", near);
  get("runs/{run}/search", "q limit", search);
  add_flame_routes(router, store, namer);
}

Service::Service(AccessRules rules, RunStore& store, std::span<const Asset> assets,
                 analysis::FrameNamer* namer)
    : rules_(std::move(rules)), namer_(std::make_unique<SharedNamer>(namer)), assets_(assets) {
  add_routes(router_, store, *namer_);
}

Response Service::handle(const Request& request) const {
  const bool is_api = is_api_path(request.target);
  if (auto refusal = refuse(rules_, request, is_api)) return std::move(*refusal);
  if (!is_api) return serve_asset(assets_, request);
  Request inner = request;
  inner.target.erase(0, kPrefix.size());
  if (inner.target.empty() || inner.target.front() == '?') inner.target.insert(0, "/");
  Response out = router_.handle(inner);
  compress(request, out);
  return out;
}

}  // namespace dial9::server
