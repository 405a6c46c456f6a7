// See flame_json.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/flame_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "analysis/cpu_flame.h"
#include "analysis/flame.h"

namespace dial9::server {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostNodes = 20'000;
constexpr std::uint64_t kUsualNodes = 5'000;
constexpr std::uint32_t kMostFunctions = 1'000;
constexpr std::uint64_t kMostMoments = 4'000;
constexpr std::size_t kMostTextBytes = 512;

struct Query {
  analysis::SampleFilter filter;
  bool is_inverted = false;
  std::uint32_t nodes = 0;
};

std::unexpected<Error> wrong(const std::string& what) {
  return make_error(ErrorCode::kInvalidArgument, what);
}

Result<std::optional<std::uint64_t>> id_of(const Call& call, std::string_view name) {
  const auto text = call.query(name);
  if (!text) return std::optional<std::uint64_t>();
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), id);
  if (error != std::errc{} || end != text->data() + text->size()) {
    return wrong("parameter '" + std::string(name) + "': give an id, a whole number");
  }
  return std::optional(id);
}

// A moment relative to the trace's start, as recorded.
std::uint64_t absolute(const Run& run, double at_ns) {
  const analysis::Trace& trace = run.trace();
  if (at_ns <= 0) return trace.begin_ns;
  const double most = static_cast<double>(~std::uint64_t{0} - trace.begin_ns);
  return at_ns >= most ? ~std::uint64_t{0} : trace.begin_ns + static_cast<std::uint64_t>(at_ns);
}

Result<Query> query_of(const Call& call, const Run& run) {
  constexpr double kFarNs = 1e19;
  Query query;
  const auto from = call.number("from", -kFarNs, kFarNs, -kFarNs);
  if (!from) return std::unexpected(from.error());
  const auto to = call.number("to", -kFarNs, kFarNs, kFarNs);
  if (!to) return std::unexpected(to.error());
  query.filter.from_ns = call.query("from") ? absolute(run, *from) : 0;
  query.filter.to_ns = call.query("to") ? absolute(run, *to) : ~std::uint64_t{0};
  const auto worker = id_of(call, "worker");
  if (!worker) return std::unexpected(worker.error());
  const auto task = id_of(call, "task");
  if (!task) return std::unexpected(task.error());
  const auto span = id_of(call, "span");
  if (!span) return std::unexpected(span.error());
  if (*worker)
    query.filter.worker =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(**worker, ~std::uint32_t{0}));
  query.filter.task = *task;
  if (*span) {
    const auto& spans = run.trace().spans;
    if (**span >= spans.size() || spans.id[**span] == 0) {
      return make_error(ErrorCode::kNotFound, "parameter 'span': no such span, or one without id");
    }
    query.filter.span = spans.id[**span];
  }
  query.filter.thread = call.query("thread").value_or("");
  query.filter.label = call.query("label").value_or("");
  if (query.filter.thread.size() > kMostTextBytes || query.filter.label.size() > kMostTextBytes) {
    return wrong("parameters 'thread' and 'label': give at most 512 bytes");
  }
  const auto inverted = call.integer("inverted", 0, 1, 0);
  if (!inverted) return std::unexpected(inverted.error());
  query.is_inverted = *inverted != 0;
  const auto nodes = call.integer("nodes", 1, kMostNodes, kUsualNodes);
  if (!nodes) return std::unexpected(nodes.error());
  query.nodes = static_cast<std::uint32_t>(*nodes);
  return query;
}

}  // namespace

std::vector<symbolize::Frame> SharedNamer::frames(std::string_view path, std::string_view build_id,
                                                  std::uint64_t address, bool is_return) {
  if (inner_ == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return inner_->frames(path, build_id, address, is_return);
}

std::vector<symbolize::Frame> SharedNamer::kernel_frames(std::string_view boot_id,
                                                         std::uint64_t address, bool is_return) {
  if (inner_ == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return inner_->kernel_frames(boot_id, address, is_return);
}

Response flame(const Call& call, const Run& run, SharedNamer& namer) {
  const auto query = query_of(call, run);
  if (!query) return error_response(query.error());
  const analysis::CpuFlame flame =
      analysis::cpu_flame(run.trace(), query->filter, &namer, query->is_inverted);
  Response out;
  out.body = analysis::flame_json(flame.tree, flame.heading, query->nodes, kMostFunctions);
  return out;
}

void name_frames(const Run& run, SharedNamer& namer, std::uint32_t stack, std::uint64_t at_ns,
                 json& frames) {
  if (stack == analysis::kNoIndex) return;
  const auto& trace = run.trace();
  const analysis::NameId process = trace.stacks.runs[stack];
  json named = json::array();
  bool is_return = false;
  for (json& frame : frames) {
    std::uint64_t address = 0;
    const std::string text = frame["address"];
    std::from_chars(text.data() + 2, text.data() + text.size(), address, 16);
    const auto found = frame["name"].is_null()
                           ? analysis::frames_of(trace, &namer, process, at_ns, address, is_return)
                           : std::vector<symbolize::Frame>();
    for (const symbolize::Frame& at : found) {
      json one = frame;
      one["name"] = at.name.substr(0, kMostTextBytes);
      one["inlined"] = at.is_inlined;
      if (at.at_line != 0) {
        one["file"] = at.at_file.substr(0, kMostTextBytes);
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
  const auto query = query_of(call, run);
  if (!query) return error_response(query.error());
  const auto node = call.integer("node", 0, kMostNodes);
  if (!node) return error_response(node.error());
  const auto limit = call.integer("limit", 1, kMostMoments, kMostMoments);
  if (!limit) return error_response(limit.error());
  const auto& trace = run.trace();
  const auto moments =
      analysis::cpu_flame_moments(trace, query->filter, &namer, query->is_inverted, query->nodes,
                                  static_cast<std::uint32_t>(*node), *limit);
  if (!moments) return error_response(404, "not_found", "no such frame in this tree");
  json rows = json::array();
  for (const std::uint32_t sample : moments->samples) {
    rows.push_back({{"sample", sample}, {"at_ns", run.relative(trace.samples[sample].at_ns)}});
  }
  Response out;
  out.body = json{{"total", moments->total},
                  {"weight", moments->weight},
                  {"left_out", moments->total - moments->samples.size()},
                  {"moments", std::move(rows)}}
                 .dump();
  return out;
}

}  // namespace dial9::server
