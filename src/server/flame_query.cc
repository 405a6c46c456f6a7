// See flame_query.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/flame_query.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <optional>

namespace dial9::server {
namespace {

using analysis::FlameOf;
using analysis::FlameOrder;
using analysis::FlameTop;

constexpr std::uint64_t kUsualNodes = 5'000;

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

Result<void> read_ids(const Call& call, const Run& run, analysis::SampleFilter& filter) {
  const auto worker = id_of(call, "worker");
  if (!worker) return std::unexpected(worker.error());
  const auto task = id_of(call, "task");
  if (!task) return std::unexpected(task.error());
  const auto span = id_of(call, "span");
  if (!span) return std::unexpected(span.error());
  if (*worker) {
    filter.worker =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(**worker, ~std::uint32_t{0}));
  }
  filter.task = *task;
  if (*span) {
    const auto& spans = run.trace().spans;
    if (**span >= spans.size() || spans.id[**span] == 0) {
      return make_error(ErrorCode::kNotFound, "parameter 'span': no such span, or one without id");
    }
    filter.span = spans.id[**span];
  }
  const auto thread = text_of(call, "thread", kMostFlameTextBytes);
  if (!thread) return std::unexpected(thread.error());
  const auto label = text_of(call, "label", kMostFlameTextBytes);
  if (!label) return std::unexpected(label.error());
  filter.thread = *thread;
  filter.label = *label;
  return {};
}

// What the tree is of, and how it stands.
Result<void> read_kind(const Call& call, analysis::FlameQuery& query) {
  const std::string_view of = call.query("of").value_or("cpu");
  const auto kind = analysis::flame_of(of);
  if (!kind) return wrong("parameter 'of': give cpu, offcpu, time, locks, allocated or live");
  query.of = *kind;
  const std::string_view top = call.query("top").value_or("reason");
  if (top != "reason" && top != "call" && top != "none") {
    return wrong("parameter 'top': give reason, call or none");
  }
  query.top = top == "reason" ? FlameTop::kReason
              : top == "call" ? FlameTop::kCall
                              : FlameTop::kNone;
  const std::string_view order = call.query("order").value_or("heavy");
  if (order != "heavy" && order != "time") {
    return wrong("parameter 'order': give heavy or time");
  }
  query.order = order == "time" ? FlameOrder::kTime : FlameOrder::kHeavy;
  for (const auto& [name, into] :
       {std::pair{"inverted", &query.is_inverted}, std::pair{"parked", &query.has_parked},
        std::pair{"counts", &query.counts}}) {
    const auto flag = call.integer(name, 0, 1, 0);
    if (!flag) return std::unexpected(flag.error());
    *into = *flag != 0;
  }
  const auto lines = call.integer("lines", 0, 1, 0);
  if (!lines) return std::unexpected(lines.error());
  query.frames = *lines != 0 ? analysis::FrameBy::kLine : analysis::FrameBy::kFunction;
  return {};
}

// As a shell takes it.
std::string quoted(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-_./:=,@+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), is_plain)) {
    return std::string(text);
  }
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string filter_options(const analysis::SampleFilter& filter, const Run& run) {
  std::string out;
  const std::uint64_t begin_ns = run.trace().begin_ns;
  if (filter.from_ns > begin_ns) {
    out += " --from " + std::to_string(filter.from_ns - begin_ns) + "ns";
  }
  if (filter.to_ns != ~std::uint64_t{0}) {
    out += " --to " + std::to_string(filter.to_ns - std::min(filter.to_ns, begin_ns)) + "ns";
  }
  if (filter.worker) out += " --worker " + std::to_string(*filter.worker);
  if (filter.task) out += " --task " + std::to_string(*filter.task);
  if (filter.span) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%" PRIx64, *filter.span);
    out += std::string(" --span ") + text;
  }
  if (!filter.thread.empty()) out += " --thread " + quoted(filter.thread);
  if (!filter.label.empty()) out += " --label " + quoted(filter.label);
  return out;
}

}  // namespace

std::uint64_t absolute_ns(const Run& run, double at_ns) {
  const analysis::Trace& trace = run.trace();
  if (at_ns <= 0) return trace.begin_ns;
  const double most = static_cast<double>(~std::uint64_t{0} - trace.begin_ns);
  return at_ns >= most ? ~std::uint64_t{0} : trace.begin_ns + static_cast<std::uint64_t>(at_ns);
}

Result<void> read_range(const Call& call, const Run& run, std::string_view from,
                        std::string_view to, analysis::SampleFilter& filter) {
  constexpr double kFarNs = 1e19;
  const auto from_ns = call.number(from, -kFarNs, kFarNs, -kFarNs);
  if (!from_ns) return std::unexpected(from_ns.error());
  const auto to_ns = call.number(to, -kFarNs, kFarNs, kFarNs);
  if (!to_ns) return std::unexpected(to_ns.error());
  if (call.query(from) && call.query(to) && *from_ns > *to_ns) {
    return wrong("parameter '" + std::string(from) + "' lies behind '" + std::string(to) + "'");
  }
  filter.from_ns = call.query(from) ? absolute_ns(run, *from_ns) : 0;
  filter.to_ns = call.query(to) ? absolute_ns(run, *to_ns) : ~std::uint64_t{0};
  return {};
}

Result<std::string> text_of(const Call& call, std::string_view name, std::size_t most) {
  const std::string_view text = call.query(name).value_or("");
  if (text.size() > most) {
    return wrong("parameter '" + std::string(name) + "': give at most " + std::to_string(most) +
                 " bytes");
  }
  return std::string(text);
}

Result<FlameCall> flame_call(const Call& call, const Run& run) {
  FlameCall out;
  out.query.span_times = &run.span_times();
  if (const auto read = read_range(call, run, "from", "to", out.query.filter); !read) {
    return std::unexpected(read.error());
  }
  if (const auto read = read_ids(call, run, out.query.filter); !read) {
    return std::unexpected(read.error());
  }
  if (const auto read = read_kind(call, out.query); !read) return std::unexpected(read.error());
  const auto nodes = call.integer("nodes", 1, kMostFlameNodes, kUsualNodes);
  if (!nodes) return std::unexpected(nodes.error());
  out.nodes = static_cast<std::uint32_t>(*nodes);
  return out;
}

std::vector<std::string> flame_commands(const analysis::FlameQuery& query, const Run& run) {
  const std::string rest = filter_options(query.filter, run) +
                           (query.frames == analysis::FrameBy::kLine ? " --lines" : "") +
                           (query.is_inverted ? " --inverted " : " ") + quoted(run.name());
  const std::string off =
      std::string("dial9 offcpu") + (query.has_parked ? " --parked" : "") + rest;
  switch (query.of) {
    case FlameOf::kCpu:
      return {"dial9 flame" + rest};
    case FlameOf::kOffCpu:
      return {off};
    case FlameOf::kTime:
      return {"dial9 flame" + rest, off};
    case FlameOf::kLocks:
      return {};
    case FlameOf::kAllocated:
    case FlameOf::kLive:
      break;
  }
  if (query.filter.worker) return {};  // heap samples don't tell it
  return {std::string("dial9 heap --format folded") +
          (query.of == FlameOf::kLive ? " --live" : "") + (query.counts ? " --count" : "") + rest};
}

}  // namespace dial9::server
