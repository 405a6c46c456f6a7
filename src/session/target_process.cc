// See target_process.h.
// SPDX-License-Identifier: Apache-2.0
#include "session/target_process.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/plural.h"
#include "base/whole_file.h"
#include "recorder/arena_reader.h"
#include "recorder/recording_state.h"
#include "recorder/run_directory.h"
#include "recorder/shed_rate.h"
#include "session/look_rates.h"
#include "storage/trace_files.h"

namespace dial9::internal {
namespace {

constexpr char kProc[] = "/proc";
// A busy collector drains every 5 ms; a look takes well under 1 ms a hundred chunks.
constexpr int kJoinTries = 20;
constexpr int kReplacedTries = 3;

std::uint64_t clock_ns(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::string who(const KernelProcess& process) {
  return "process " + std::to_string(process.pid) + " (" + process.name + ")";
}

Error permission_error(const KernelProcess& process) {
  std::string why = who(process) + " belongs to user " + std::to_string(process.uid);
  if (::geteuid() == 0) {
    why +=
        ", and even root may not read its memory here; run it with CAP_SYS_PTRACE (docker run "
        "--cap-add SYS_PTRACE), or outside this container";
  } else if (::geteuid() == process.uid) {
    why +=
        " as this one does, and its memory may not be read all the same (it may not be dumped, "
        "or kernel.yama.ptrace_scope forbids it); run it as root (sudo), or with "
        "CAP_SYS_PTRACE";
  } else {
    why +=
        ", and this user may not read its memory; run it as root (sudo), or as that user with "
        "CAP_SYS_PTRACE";
  }
  return {ErrorCode::kPermission, std::move(why), kNoOffset};
}

Error no_recorder_error(const KernelProcess& process) {
  return {ErrorCode::kNotFound,
          who(process) +
              " has no recorder of dial9 running; start one in it (dial9::Recorder::start, or "
              "DIAL9_ENABLED=1 with recorder_from_env). One that keeps its thread buffers in "
              "anonymous memory (DIAL9_ANONYMOUS_MEMORY) can't be found from outside",
          kNoOffset};
}

Error zombie_error(const KernelProcess& process) {
  return {ErrorCode::kNotFound,
          who(process) + " is dead (a zombie); `dial9 recover DIR` makes segments of what it left",
          kNoOffset};
}

// By its maps, which the kernel gives to who may look into its memory.
Result<std::string> read_maps(const KernelProcess& process, std::uint32_t tid) {
  Result<std::string> maps =
      read_whole_file(std::string(kProc) + "/" + std::to_string(tid) + "/maps");
  if (!maps && maps.error().code == ErrorCode::kPermission) {
    return std::unexpected(permission_error(process));
  }
  if (!maps) {
    return make_error(ErrorCode::kNotFound, who(process) + " ended while it was looked at");
  }
  if (maps->empty()) {
    return make_error(ErrorCode::kNotFound,
                      who(process) +
                          " has no memory of its own: it is a thread of the kernel, or "
                          "it is just ending; give the id of a program");
  }
  return maps;
}

bool is_dead(std::uint32_t pid) {
  const Result<KernelProcess> process = read_kernel_process(kProc, pid);
  return !process || living_thread(*process) == 0;
}

// One chunk's use, as far as it tells what is missing.
struct ChunkUse {
  std::uint32_t tid;
  std::uint64_t opened_ns;
};

bool is_same_place(const std::optional<ArenaSegment>& a, const std::optional<ArenaSegment>& b) {
  if (!a || !b) return !a && !b;
  return a->index == b->index && a->bytes == b->bytes;
}

}  // namespace

struct TargetProcess::State {
  std::uint32_t pid;
  std::uint32_t tid;  // of a thread of it that lived
  ArenaReader reader;
  std::string run_directory;
  std::vector<ArenaIdentity> others;  // of other recorders that run in it

  std::vector<ChunkView> read_chunks(TargetLook& look) const;
  bool read_segments(std::uint64_t history_bytes, const std::optional<ArenaSegment>& active,
                     TargetLook& look) const;
  void add_losses(TargetLook& look) const;
  void find_horizon(const std::vector<ChunkView>& chunks, TargetLook& look) const;
};

TargetProcess::TargetProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
TargetProcess::TargetProcess(TargetProcess&&) noexcept = default;
TargetProcess& TargetProcess::operator=(TargetProcess&&) noexcept = default;
TargetProcess::~TargetProcess() = default;

std::string run_directory_in_maps(const std::string& maps, const std::string& boot_id) {
  constexpr std::string_view kDeleted = " (deleted)";
  const std::string name = std::string("/") + kArenaName;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(kDeleted)) line.resize(line.size() - kDeleted.size());
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos || !line.ends_with("/" + boot_id + name)) continue;
    return line.substr(slash, line.size() - slash - name.size());
  }
  return {};
}

Result<TargetProcess> TargetProcess::open(std::uint32_t pid) {
  const Result<KernelProcess> process = read_kernel_process(kProc, pid);
  if (!process) return std::unexpected(process.error());
  const std::uint32_t tid = living_thread(*process);
  if (tid == 0) return std::unexpected(zombie_error(*process));
  const Result<std::string> maps = read_maps(*process, tid);
  if (!maps) return std::unexpected(maps.error());
  std::vector<ArenaIdentity> others;
  Result<ArenaReader> reader = ArenaReader::open_process(static_cast<pid_t>(tid), &others);
  if (!reader) {
    const ErrorCode code = reader.error().code;
    if (code == ErrorCode::kPermission) return std::unexpected(permission_error(*process));
    if (code == ErrorCode::kNotFound) return std::unexpected(no_recorder_error(*process));
    return std::unexpected(reader.error());
  }
  if (reader->identity().pid != process->inner_pid) {
    return make_error(ErrorCode::kNotFound,
                      who(*process) + " only shares the thread buffers of process " +
                          std::to_string(reader->identity().pid) +
                          ", which it was forked from; it records nothing itself");
  }
  std::string directory = run_directory_in_maps(*maps, reader->identity().boot_id);
  return TargetProcess(std::make_unique<State>(
      State{pid, tid, std::move(*reader), std::move(directory), std::move(others)}));
}

std::vector<ChunkView> TargetProcess::State::read_chunks(TargetLook& look) const {
  std::vector<ChunkView> chunks;
  look.events_unreadable = 0;
  std::uint64_t unreadable = 0;
  std::string why;  // of the last one
  for (const std::uint32_t i : reader.used_chunks()) {
    ChunkView view;
    const ChunkLook result = reader.read(i, &view);
    // Of a recorder that was stopped all is in segments, and the memory of what no thread has open
    // was given back.
    if (result == ChunkLook::kUnreadable && !view.is_open && reader.stopped_ns() != 0) continue;
    look.events_unreadable += view.events_unreadable;
    if (result == ChunkLook::kRead) chunks.push_back(std::move(view));
    if (result == ChunkLook::kUnreadable) {
      ++unreadable;
      if (view.problem) why = view.problem->message;
    }
    // What a recycled chunk held is in a segment by now, or counted above: the join is looked at
    // again.
    if (result == ChunkLook::kRecycled) look.is_join_exact = false;
  }
  if (unreadable != 0)
    look.notes.push_back(plural(unreadable, "chunk") +
                         (unreadable == 1 ? " was unreadable: " : " were unreadable: ") + why);
  return chunks;
}

// Newest first up to the bytes asked for; then in order. False: none was taken.
bool TargetProcess::State::read_segments(std::uint64_t history_bytes,
                                         const std::optional<ArenaSegment>& active,
                                         TargetLook& look) const {
  if (history_bytes == 0 || run_directory.empty() || !active) return false;
  const std::string directory = std::string(kProc) + "/" + std::to_string(tid) + "/root";
  auto files = storage::expand_path(directory + run_directory);
  if (!files) {
    // In another mount namespace that can't be entered the plain path may still be the same one.
    files = storage::expand_path(run_directory);
  }
  if (!files) {
    look.notes.push_back("its segments can't be read: " + files.error().message);
    return false;
  }
  std::vector<TargetBytes> taken;
  std::uint64_t bytes_left = history_bytes;
  std::uint64_t wanted_index = active->index;
  for (auto file = files->files.rbegin(); file != files->files.rend(); ++file) {
    if (file->state == storage::SegmentState::kCompressed || file->index > active->index) continue;
    if (file->index != wanted_index) break;  // a gap: what is older doesn't join on
    const bool is_active = file->index == active->index;
    const std::uint64_t most = is_active ? active->bytes : file->size_bytes;
    if (most > bytes_left && !taken.empty()) break;
    TargetBytes part{file->path, {}};
    const auto read = storage::read_file(file->path, [&](std::span<const std::uint8_t> bytes) {
      const std::uint64_t room = most - std::min<std::uint64_t>(most, part.bytes.size());
      const std::size_t count = std::min<std::uint64_t>(room, bytes.size());
      part.bytes.insert(part.bytes.end(), bytes.begin(),
                        bytes.begin() + static_cast<std::ptrdiff_t>(count));
      return Result<void>();
    });
    if (!read || part.bytes.size() < most) {
      if (taken.empty()) return false;
      break;
    }
    bytes_left -= std::min(bytes_left, most);
    taken.push_back(std::move(part));
    look.has_whole_run = wanted_index == 0;
    if (wanted_index == 0) break;
    --wanted_index;
  }
  if (taken.empty()) return false;
  look.parts.insert(look.parts.end(), std::make_move_iterator(taken.rbegin()),
                    std::make_move_iterator(taken.rend()));
  return true;
}

void TargetProcess::State::add_losses(TargetLook& look) const {
  for (const ArenaLoss& loss : reader.losses()) {
    const std::uint64_t told = look.has_segments ? std::min(loss.told, loss.count) : 0;
    if (loss.count == told) continue;
    // Of those that earlier segments tell of, only these know when.
    const bool is_timed = look.has_segments || loss.told == 0;
    look.losses.push_back(
        {loss.cause, loss.count - told, is_timed ? loss.first_ns : 0, is_timed ? loss.last_ns : 0});
  }
  const auto add_off = [&](std::uint64_t since_ns, std::uint64_t until_ns) {
    look.losses.push_back({kRecordingOff, 0, since_ns, until_ns});
  };
  const ArenaReader::Off off = reader.off_stretch();
  const bool is_off = off.since_ns != 0 && off.until_ns == 0;
  if (off.since_ns != 0) add_off(off.since_ns, is_off ? look.now_ns : off.until_ns);
  if (is_off) look.off_since_ns = off.since_ns;
  look.stopped_ns = std::min(reader.stopped_ns(), look.now_ns);
  if (look.stopped_ns != 0 && !is_off) add_off(look.stopped_ns, look.now_ns);
}

// A thread's records are whole from the opening of its oldest chunk that is still there without a
// gap. What a chunk held in an earlier use was recorded before it was opened anew; what a free one
// held, before its thread opened the next one.
void TargetProcess::State::find_horizon(const std::vector<ChunkView>& chunks,
                                        TargetLook& look) const {
  std::uint64_t since_ns = 0;
  std::vector<ChunkUse> uses;
  for (const ChunkView& chunk : chunks) {
    uses.push_back({chunk.tid, chunk.opened_ns});
    if (chunk.sequence > 1) since_ns = std::max(since_ns, chunk.opened_ns);
  }
  for (std::uint32_t i = 0; i < reader.chunk_count(); ++i) {
    const std::optional<FreeChunk> chunk = reader.free_chunk(i);
    if (!chunk || chunk->sequence == 0) continue;
    std::uint64_t next_ns = look.now_ns;
    for (const ChunkUse& use : uses) {
      if (use.tid == chunk->tid && use.opened_ns > chunk->opened_ns) {
        next_ns = std::min(next_ns, use.opened_ns);
      }
    }
    since_ns = std::max(since_ns, next_ns);
  }
  look.chunks_complete_since_ns = since_ns;
}

// What was read is thrown away if the process has no such recorder any more.
Result<TargetLook> TargetProcess::look(std::uint64_t history_bytes) {
  for (int attempt = 0;; ++attempt) {
    Result<TargetLook> look = look_once(history_bytes);
    if (!look || living_thread(look->kernel) == 0) return look;
    Result<TargetProcess> now = open(state_->pid);
    if (!now && is_dead(state_->pid)) return look;
    if (!now) return std::unexpected(now.error());
    if (now->state_->reader.identity().boot_id == look->boot_id) return look;
    if (attempt == kReplacedTries) {
      return make_error(ErrorCode::kIo,
                        who(look->kernel) + " starts one recorder after the other: try again");
    }
    *this = std::move(*now);
  }
}

Result<TargetLook> TargetProcess::look_once(std::uint64_t history_bytes) {
  TargetLook look;
  std::vector<ChunkView> chunks;
  std::optional<ArenaSegment> before;
  std::vector<ShedRate> rates;
  for (int attempt = 0; attempt < kJoinTries; ++attempt) {
    look = TargetLook();
    // Before the reading: all that was published by then is in it.
    look.now_ns = clock_ns(CLOCK_MONOTONIC);
    look.realtime_ns = clock_ns(CLOCK_REALTIME);
    before = state_->reader.active_segment();
    rates = rates_around([&] { return state_->reader.raises(); },
                         [&] { chunks = state_->read_chunks(look); });
    look.is_join_exact =
        look.is_join_exact && is_same_place(before, state_->reader.active_segment());
    if (look.is_join_exact) break;
  }
  const ArenaIdentity& identity = state_->reader.identity();
  look.boot_id = identity.boot_id;
  look.run_directory = state_->run_directory;
  look.recorder_started_ns = identity.started_ns;
  look.chunks_total = state_->reader.chunk_count();
  look.chunks_in_use = chunks.size();
  look.has_segments = state_->read_segments(history_bytes, before, look);
  if (!look.has_segments) {
    look.parts.clear();
    look.has_whole_run = false;
    look.parts.push_back({"metadata", state_->reader.prologue()});
  }
  if (!look.has_segments) state_->find_horizon(chunks, look);
  if (!rates.empty()) {
    format::Encoder out;
    put_rates(out, 1, rates);
    look.parts.push_back({"rates", out.take()});
  }
  for (ChunkView& chunk : chunks) {
    std::vector<std::uint8_t>& bytes = look.has_segments ? chunk.rest : chunk.stream;
    if (bytes.empty()) continue;
    look.parts.push_back(
        {"thread " + std::to_string(chunk.tid) + ", chunk " + std::to_string(chunk.index),
         std::move(bytes)});
  }
  state_->add_losses(look);
  Result<KernelProcess> kernel = read_kernel_process(kProc, state_->pid);
  if (!kernel && chunks.empty()) return std::unexpected(kernel.error());
  if (kernel) {
    look.kernel = std::move(*kernel);
  } else {
    look.kernel.pid = state_->pid;
    look.notes.push_back(kernel.error().message);
  }
  for (const ArenaIdentity& other : state_->others) {
    look.notes.push_back("another recorder runs in it, too, as run " + other.boot_id +
                         ": a second copy of the library, of which nothing is shown");
  }
  if (!look.is_join_exact) {
    look.notes.push_back(
        "the recorder drained while it was read: some milliseconds may be missing");
  }
  return look;
}

}  // namespace dial9::internal
