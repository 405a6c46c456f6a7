// See snapshot_view.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/loader.h"
#include "format/encoder.h"

namespace dial9::cli {
namespace {

using format::Encoder;
using format::FieldType;
using internal::KernelThread;
using internal::TargetLook;

// Of the look's own stream.
constexpr std::uint16_t kClockSync = 1;
constexpr std::uint16_t kMetadata = 2;
constexpr std::uint16_t kLoss = 3;
constexpr std::uint16_t kThreadState = 4;

void number(Encoder& out, const std::optional<std::uint64_t>& value) {
  if (value) {
    out.present();
    out.varint(*value);
  } else {
    out.absent();
  }
}

void text(Encoder& out, const std::optional<std::string>& value) {
  if (value) {
    out.present();
    out.pooled_string(*value);
  } else {
    out.absent();
  }
}

void encode_head(Encoder& out, const TargetLook& look) {
  out.schema(kClockSync, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}});
  out.begin(kClockSync, look.now_ns);
  out.varint(look.realtime_ns);
  std::string notes;
  for (const std::string& note : look.notes) notes += (notes.empty() ? "" : "; ") + note;
  const std::string pid = std::to_string(look.kernel.pid);
  out.schema(kMetadata, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}});
  out.begin(kMetadata, look.now_ns);
  out.string_map({{"snapshot.pid", pid},
                  {"snapshot.process", look.kernel.name},
                  {"snapshot.boot_id", look.boot_id},
                  {"snapshot.run_directory", look.run_directory},
                  {"snapshot.notes", notes}});
}

void encode_losses(Encoder& out, const TargetLook& look) {
  out.schema(kLoss, "RecorderLossEvent", true,
             {{"cause", FieldType::kPooledString},
              {"count", FieldType::kVarint},
              {"first_ns", FieldType::kVarint},
              {"last_ns", FieldType::kVarint}});
  out.annotations(kLoss, {{2, "unit", "ns"}, {3, "unit", "ns"}});
  for (const internal::TargetLoss& loss : look.losses) {
    const bool is_timed = loss.first_ns != 0;
    out.begin(kLoss, look.now_ns);
    out.pooled_string(loss.cause);
    out.varint(loss.count);
    // Not known when: at any time since the start.
    out.varint(is_timed ? loss.first_ns : look.recorder_started_ns);
    out.varint(is_timed ? std::max(loss.first_ns, loss.last_ns) : look.now_ns);
  }
}

void encode_threads(Encoder& out, const TargetLook& look) {
  out.schema(kThreadState, "ThreadStateEvent", true,
             {{"tid", FieldType::kU32},
              {"thread_name", FieldType::kPooledString},
              {"state", FieldType::kPooledString},
              {"wchan", FieldType::kPooledString, true},
              {"syscall", FieldType::kPooledString, true},
              {"run_ns", FieldType::kVarint, true},
              {"wait_ns", FieldType::kVarint, true},
              {"voluntary_switches", FieldType::kVarint, true},
              {"involuntary_switches", FieldType::kVarint, true}});
  out.annotations(kThreadState, {{5, "unit", "ns"}, {6, "unit", "ns"}});
  for (const KernelThread& thread : look.kernel.threads) {
    out.begin(kThreadState, look.now_ns);
    out.u32(thread.inner_tid);
    out.pooled_string(thread.name);
    out.pooled_string(std::string(1, thread.state));
    text(out, thread.wchan);
    text(out,
         thread.syscall ? std::optional(internal::syscall_name(*thread.syscall)) : std::nullopt);
    number(out, thread.run_ns);
    number(out, thread.wait_ns);
    number(out, thread.voluntary_switches);
    number(out, thread.involuntary_switches);
  }
}

// Its recorder may leave out polls to keep within a budget, and tells of it only afterwards.
bool is_governed(const ProcessView& view) {
  return view.trace.metadata_value("dial9.governed") == "true";
}

bool all_threads(const internal::KernelProcess& process, bool (*is_so)(const KernelThread&)) {
  bool has_any = false;
  for (const KernelThread& thread : process.threads) {
    if (thread.state == 'Z' || thread.state == 'X') continue;
    if (!is_so(thread)) return false;
    has_any = true;
  }
  return has_any;
}

// Why no thread of it runs, where that is somebody's doing. Empty: it isn't.
std::string halt_text(const internal::KernelProcess& process) {
  const std::string pid = std::to_string(process.pid);
  if (all_threads(process, [](const KernelThread& thread) {
        return thread.wchan == "do_freezer_trap" || thread.wchan == "__refrigerator";
      })) {
    return "it is frozen by its cgroup (a paused container), and times go on meanwhile; whoever "
           "paused it can thaw it";
  }
  if (all_threads(process, [](const KernelThread& thread) { return thread.state == 'T'; })) {
    return "it is stopped (SIGSTOP, Ctrl-Z), and times go on meanwhile; `kill -CONT " + pid +
           "` lets it go on";
  }
  if (all_threads(process, [](const KernelThread& thread) {
        return thread.state == 't' || thread.state == 'T';
      })) {
    return "it is stopped by a debugger or tracer, and times go on meanwhile; TracerPid in /proc/" +
           pid + "/status says whose";
  }
  return {};
}

// Words of what nobody can know, and of why nothing moves.
void add_notes(ProcessView& view) {
  std::vector<std::string>& notes = view.look.notes;
  if (std::string halt = halt_text(view.look.kernel); !halt.empty()) {
    notes.insert(notes.begin(), std::move(halt));
  }
  if (view.look.stopped_ns != 0) {
    notes.insert(notes.begin(),
                 "its recorder was stopped " +
                     analysis::human_duration(view.look.now_ns -
                                              std::min(view.look.stopped_ns, view.look.now_ns)) +
                     " ago: what happened since isn't known; Recorder::start() starts another");
  } else if (view.look.off_since_ns != 0) {
    notes.insert(notes.begin(),
                 "recording is off, for " +
                     analysis::human_duration(view.look.now_ns -
                                              std::min(view.look.off_since_ns, view.look.now_ns)) +
                     ": what happened since isn't known; enable() turns it on");
  }
  if (is_governed(view)) notes.push_back("its recorder keeps a budget and may have left out polls");
}

// From when on no record of any thread is missing.
std::uint64_t complete_since(const ProcessView& view) {
  const TargetLook& look = view.look;
  const bool has_untimed_loss =
      std::any_of(look.losses.begin(), look.losses.end(),
                  [](const internal::TargetLoss& loss) { return loss.first_ns == 0; });
  if (!look.is_join_exact || has_untimed_loss || look.events_unreadable != 0 || is_governed(view)) {
    return look.now_ns;
  }
  if (look.has_whole_run) return 0;
  if (!look.has_segments) return look.chunks_complete_since_ns;
  // A segment begins with a clock pair, and what was recorded after that is in none before it.
  return view.trace.anchors.empty() ? look.now_ns : view.trace.anchors.front().monotonic_ns;
}

}  // namespace

std::vector<std::uint8_t> encode_look(const TargetLook& look) {
  Encoder out;
  encode_head(out, look);
  encode_losses(out, look);
  encode_threads(out, look);
  return out.take();
}

ProcessView make_view(TargetLook look, std::size_t max_rows) {
  ProcessView view;
  view.look = std::move(look);
  view.own_stream = encode_look(view.look);
  analysis::Loader loader;
  const auto add = [&](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    if (bytes.empty()) return;
    loader.begin_input(name);
    // What can't be read is kept as the input's error, and shown.
    (void)loader.feed(bytes);
    (void)loader.end_input();
  };
  for (const internal::TargetBytes& part : view.look.parts) add(part.name, part.bytes);
  add("snapshot", view.own_stream);
  view.trace = loader.finish();
  for (const analysis::InputFile& input : view.trace.inputs) {
    if (input.error) view.look.notes.push_back(input.name + ": " + input.error->message);
  }
  add_notes(view);
  view.complete_since_ns = complete_since(view);
  view.now =
      analysis::look_at_now(view.trace, {view.look.now_ns, view.complete_since_ns, max_rows});
  // A poll or park that is kept has its end, too; but one that is left out may be under way.
  for (analysis::WorkerNow& worker : view.now.workers) {
    worker.is_uncertain |= is_governed(view) && worker.doing == analysis::WorkerDoing::kBetween;
    worker.is_partial |= is_governed(view);
  }
  return view;
}

bool may_miss_waits(const ProcessView& view) {
  return view.complete_since_ns > view.look.recorder_started_ns || view.now.uncertain_tasks != 0;
}

const KernelThread* thread_of(const ProcessView& view, const analysis::WorkerNow& worker) {
  const analysis::Lane& lane = view.trace.lanes[worker.lane];
  std::uint32_t tid = lane.tid;
  for (std::size_t i = view.trace.sched.size(); tid == 0 && i-- > 0;) {
    if (view.trace.sched[i].worker == lane.worker) tid = view.trace.sched[i].tid;
  }
  for (const KernelThread& thread : view.look.kernel.threads) {
    if (tid != 0 && thread.inner_tid == tid) return &thread;
  }
  return nullptr;
}

std::string thread_text(const KernelThread& thread) {
  std::string out = internal::state_name(thread.state);
  if (thread.syscall) out += " in " + internal::syscall_name(*thread.syscall);
  if (thread.wchan) out += " (" + printable(*thread.wchan) + ")";
  return out;
}

std::string printable(std::string_view text) { return analysis::to_printable(text); }

std::string place_of_task(const ProcessView& view, std::uint32_t task) {
  const analysis::Trace& trace = view.trace;
  const analysis::NameId spawn = trace.tasks.spawn_loc[task];
  if (spawn != analysis::kNoName) return printable(trace.names.text(spawn));
  const analysis::Range polls = trace.tasks.polls[task];
  if (polls.empty()) return {};
  return printable(trace.names.text(trace.polls.spawn_loc[trace.task_polls[polls.last - 1]]));
}

std::string task_name(const ProcessView& view, std::uint32_t task) {
  if (task == analysis::kNoIndex) return "no task";
  const std::string place = place_of_task(view, task);
  return "task " + std::to_string(view.trace.tasks.id[task]) + (place.empty() ? "" : " " + place);
}

}  // namespace dial9::cli
