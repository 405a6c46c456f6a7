// See top_page.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/top_page.h"

#include <algorithm>
#include <cmath>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "cli/snapshot_text.h"

namespace dial9::cli {
namespace {

using analysis::human_count;
using analysis::human_duration;
using analysis::kUnknownNs;
using analysis::WorkerDoing;
using analysis::WorkerNow;

constexpr std::size_t kLeastWidth = 20;
constexpr std::size_t kPlaceRows = 5;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where text takes two columns a character (Unicode's East Asian wide, and emoji), by first and
// last.
constexpr char32_t kWide[][2] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                                 {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                 {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                 {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

// Bytes and columns of the character that valid UTF-8 begins with.
struct Character {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  Character out;
  char32_t code = lead >= 0xF0 ? lead & 0x07 : lead >= 0xE0 ? lead & 0x0F : lead & 0x1F;
  while (out.bytes < text.size() && is_continuation(text[out.bytes])) {
    code = code << 6 | (static_cast<unsigned char>(text[out.bytes++]) & 0x3F);
  }
  for (const auto& [first, last] : kWide) {
    if (out.bytes > 1 && code >= first && code <= last) out.columns = 2;
  }
  return out;
}

std::size_t columns(std::string_view text) {
  std::size_t sum = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    sum += next.columns;
    text.remove_prefix(next.bytes);
  }
  return sum;
}

// In a field of `width` columns, one more behind it.
std::string left(const std::string& text, std::size_t width) {
  std::string out = cut_to(text, width);
  out.append(width - std::min(width, columns(out)) + 1, ' ');
  return out;
}
std::string right(const std::string& text, std::size_t width) {
  const std::string cut = cut_to(text, width);
  return std::string(width - std::min(width, columns(cut)), ' ') + cut + " ";
}

// Before what is the least that it may be.
const char* least(const WorkerNow& worker) { return worker.is_partial ? ">=" : ""; }

std::string busy_text(const WorkerNow& worker) {
  if (worker.window_ns == 0) return "-";
  const double share = static_cast<double>(worker.busy_ns) / static_cast<double>(worker.window_ns);
  const long percent = std::lround(std::min(share, 1.0) * 100);
  return (percent == 100 ? "" : least(worker)) + std::to_string(percent) + " %";
}

std::string rate_text(const WorkerNow& worker) {
  if (worker.window_ns == 0) return "-";
  const double rate =
      static_cast<double>(worker.polls) * 1e9 / static_cast<double>(worker.window_ns);
  return least(worker) + (rate < 10 && rate > 0 ? std::to_string(rate).substr(0, 3)
                                                : human_count(analysis::count_of(rate)));
}

std::string age_text(const ProcessView& view, std::uint64_t since_ns) {
  if (since_ns == kUnknownNs) return "unknown";
  return human_duration(view.now.now_ns > since_ns ? view.now.now_ns - since_ns : 0);
}

std::string name_of(const ProcessView& view, analysis::NameId name) {
  return printable(view.trace.names.text(name));
}

std::vector<std::string> head_parts(const ProcessView& view) {
  std::uint64_t polling = 0;
  std::uint64_t parked = 0;
  std::uint64_t uncertain = 0;
  for (const WorkerNow& worker : view.now.workers) {
    polling += worker.doing == WorkerDoing::kPolling ? 1 : 0;
    parked += worker.doing == WorkerDoing::kParked ? 1 : 0;
    uncertain += worker.is_uncertain ? 1 : 0;
  }
  return {printable(view.look.kernel.name) + " (" + std::to_string(view.look.kernel.pid) + ")",
          analysis::iso_time(view.look.realtime_ns).substr(11, 8) + "Z",
          analysis::counted(view.now.workers.size(), "worker") + ": " + human_count(polling) +
              " in polls, " + human_count(parked) + " parked" +
              (uncertain == 0 ? "" : ", " + human_count(uncertain) + " uncertain"),
          analysis::counted(view.look.kernel.threads.size(), "thread")};
}

std::vector<std::string> second_parts(const ProcessView& view) {
  std::string wait = "none known";
  if (!view.now.ready.empty()) {
    const analysis::TaskWait& longest = view.now.ready.front();
    const std::string least = may_miss_waits(view) ? ">=" : "";
    wait = least + human_count(view.now.ready_count) + ", longest " + least +
           age_text(view, longest.since_ns) + " (" + task_name(view, longest.task) + ")";
  } else if (!may_miss_waits(view)) {
    wait = "0";
  }
  return {
      "buffers " + human_count(view.look.chunks_in_use) + "/" + human_count(view.look.chunks_total),
      "lost " + (view.trace.has_unknown_loss() ? "unknown" : human_count(view.trace.lost_events())),
      "ready, not run: " + wait};
}

// As many of them a line as fit.
void add_lines(const std::vector<std::string>& parts, std::size_t width,
               std::vector<std::string>& lines) {
  std::string line;
  for (const std::string& part : parts) {
    if (!line.empty() && columns(line) + 2 + columns(part) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : "  ") + part;
  }
  lines.push_back(std::move(line));
}

std::string worker_line(const ProcessView& view, const WorkerNow& worker, std::size_t width) {
  const analysis::Lane& lane = view.trace.lanes[worker.lane];
  const char* doing = worker.since_ns == kUnknownNs           ? "unknown"
                      : worker.doing == WorkerDoing::kPolling ? "in poll"
                      : worker.doing == WorkerDoing::kParked  ? "parked"
                                                              : "between";
  std::string where;
  if (worker.doing == WorkerDoing::kPolling) {
    where = name_of(view, view.trace.polls.spawn_loc[worker.poll]);
  }
  const std::string id = lane.worker == analysis::kUnknownWorker    ? "?"
                         : lane.worker == analysis::kBlockingWorker ? "pool"
                                                                    : std::to_string(lane.worker);
  const std::string state = std::string(doing) + (worker.is_uncertain ? "?" : "");
  std::string line = right(id, 4) + left(state, 8) + right(age_text(view, worker.since_ns), 8);
  if (width >= 60) {
    line += right(rate_text(worker), 9) + right(busy_text(worker), 6);
  }
  if (width >= 80) {
    line += right(human_duration(worker.window_ns), 8);
    line += left(name_of(view, lane.runtime), 10);
  }
  if (where.empty()) {
    const internal::KernelThread* thread = thread_of(view, worker);
    where = thread == nullptr ? "" : thread_text(*thread);
  }
  return line + where;
}

std::string worker_title(std::size_t width) {
  std::string line = right("wkr", 4) + left("doing", 8) + right("for", 8);
  if (width >= 60) line += right("polls/s", 9) + right("busy", 6);
  if (width >= 80) line += right("over", 8) + left("runtime", 10);
  return line + "where";
}

std::vector<std::string> queue_lines(const ProcessView& view) {
  std::vector<std::string> lines;
  if (view.now.queues.empty()) return lines;
  lines.push_back("");
  lines.push_back(right("queued", 9) + right("alive", 9) + right("sampled", 9) + "queue");
  for (const analysis::QueueNow& queue : view.now.queues) {
    const auto sample = [](double value) {
      return value < 0 ? std::string("?") : human_count(analysis::count_of(value));
    };
    lines.push_back(right(sample(queue.depth), 9) + right(sample(queue.alive_tasks), 9) +
                    right(age_text(view, queue.at_ns), 9) + name_of(view, queue.runtime));
  }
  return lines;
}

std::vector<std::string> place_lines(const ProcessView& view) {
  std::vector<std::string> lines;
  if (view.now.places.empty()) return lines;
  lines.push_back("");
  lines.push_back(right("longest", 9) + right("mean", 9) + right("polls", 7) + "slowest handlers");
  for (std::size_t i = 0; i < std::min(kPlaceRows, view.now.places.size()); ++i) {
    const analysis::PlaceNow& place = view.now.places[i];
    const std::string name = name_of(view, place.place);
    lines.push_back(
        right(human_duration(place.longest_ns), 9) +
        right(place.polls == 0 ? "-" : human_duration(place.total_ns / place.polls), 9) +
        right(human_count(place.polls), 7) +
        (place.is_uncertain ? "(runs?) "
         : place.is_open    ? "(runs) "
                            : "") +
        (name.empty() ? "place not recorded" : name));
  }
  return lines;
}

}  // namespace

std::string cut_to(std::string_view text, std::size_t width) {
  std::size_t taken = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Character next = first_of(text.substr(bytes));
    taken += next.columns;
    if (taken > width) break;
    bytes += next.bytes;
  }
  return std::string(text.substr(0, bytes));
}

std::vector<std::string> top_page(const ProcessView& view, std::size_t width, std::size_t height) {
  width = std::max(width, kLeastWidth);
  std::vector<std::string> lines;
  add_lines(head_parts(view), width, lines);
  add_lines(second_parts(view), width, lines);
  for (const std::string& note : view.look.notes) lines.push_back("note: " + printable(note));
  std::vector<std::string> below = queue_lines(view);
  for (std::string& line : place_lines(view)) below.push_back(std::move(line));
  lines.push_back("");
  lines.push_back(worker_title(width));
  const std::vector<WorkerNow> workers = workers_by_urgency(view);
  // What is below keeps its place as long as at least four workers are to be seen.
  const std::size_t used = lines.size() + below.size();
  const std::size_t room = height == kNoHeight
                               ? workers.size()
                               : std::max<std::size_t>(height > used ? height - used : 0, 4);
  const bool is_cut = workers.size() > room;
  const std::size_t shown = is_cut ? room - 1 : workers.size();
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(worker_line(view, workers[i], width));
  if (is_cut) lines.push_back("     ... and " + human_count(workers.size() - shown) + " more");
  if (workers.empty()) lines.push_back("     no worker in the records");
  for (std::string& line : below) lines.push_back(std::move(line));
  if (height != kNoHeight && lines.size() > height) lines.resize(height);
  for (std::string& line : lines) line = cut_to(line, width);
  return lines;
}

}  // namespace dial9::cli
