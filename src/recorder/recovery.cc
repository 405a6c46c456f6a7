// The recovery of one run, in steps: see recovery.h. Idempotent by order: the segment is written
// under a name of its own, then the thread buffers are marked as recovered, then the segment gets
// its name, then the buffers go. Whoever comes after a kill in between goes on where that was.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recovery.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/os_error.h"
#include "format/wire.h"
#include "recorder/directory_names.h"
#include "recorder/guarded_fd.h"
#include "recorder/recording_state.h"
#include "recorder/recovered_stream.h"
#include "recorder/recovery_files.h"
#include "recorder/run_directory.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kStepBytes = 1 << 20;
constexpr std::size_t kMaxProblems = 16;
// What a chunk holds that fills slowly goes to a segment once in so long: by so much may an event
// be older than one before it.
constexpr std::uint64_t kDrainNs = 1'000'000'000;
// What the head and the tail of a recovered segment may take, besides the chunks.
constexpr std::uint64_t kHeadBytes = 64 << 10;

std::string segment_name(std::uint64_t index) { return "trace." + std::to_string(index) + ".bin"; }

}  // namespace

class RunRecovery::Impl {
 public:
  Impl(RecoveryOptions options, RunReport* report)
      : options_(std::move(options)), report_(*report) {}
  bool step();

 private:
  enum class Phase { kStart, kSeal, kPlan, kWrite, kPublish, kDone };
  Phase start();
  Phase seal();
  Phase plan();
  Phase write();
  Phase publish();
  Phase resume_publishing(std::uint64_t index);
  Phase finish();
  Phase fail(Error error);
  bool holds_lock();
  void note(const Error& error);
  void open_arena();
  Error unreadable_arena() const;
  void take_unreadable_arena(const Error& error);
  void look_for_missing(const std::vector<std::string>& names);
  void lose_unknown(const Error& error, UnknownLoss loss);
  Phase drop_leftover(bool stays);
  Phase cut_and_seal(bool is_trusted, const std::optional<Error>& corrupt);
  std::optional<Error> damage_of(bool is_trusted, const std::optional<Error>& corrupt) const;
  bool open_leftover(std::uint64_t index);
  bool begins_like_a_trace(const std::string& path);
  void close_leftover();
  bool needs_segment() const;
  std::uint64_t next_index() const;
  Phase begin_segment();
  std::string in_run(const std::string& name) const { return report_.path + "/" + name; }
  std::string temporary() const { return in_run(segment_name(index_) + kRecoveringSuffix); }

  const RecoveryOptions options_;
  RunReport& report_;
  Phase phase_ = Phase::kStart;
  GuardedFd lock_;
  std::optional<ArenaReader> arena_;
  bool has_unread_arena_ = false;         // there is one, and it stays
  bool has_damaged_arena_ = false;        // nothing of it can be read, by nobody
  bool has_unsealed_ = false;             // a leftover stays, and needs the journal another time
  std::vector<std::uint64_t> leftovers_;  // `.active` segments, newest first
  std::uint64_t newest_index_ = 0;        // + 1; 0: no segment was ever begun
  // The leftover that is being read.
  GuardedFd leftover_;
  std::uint64_t leftover_size_ = 0;
  bool is_foreign_ = false;            // it has the name of one, and isn't
  std::uint64_t leftover_limit_ = 0;   // what is whole of it, by the journal; or all
  std::uint64_t confirmed_bytes_ = 0;  // what its journal calls whole; 0: nothing is known
  std::uint64_t read_bytes_ = 0;
  RunFactsReader visitor_;
  std::unique_ptr<format::Decoder> decoder_;
  // The segment that is being made.
  std::uint64_t index_ = 0;
  std::vector<std::uint32_t> chunks_;  // in order of time, from next_chunk_ on to be written
  std::size_t next_chunk_ = 0;
  RecoveredHead head_;
  OutputFile output_;
  ChunkView view_;
  std::uint64_t last_ns_ = 0;  // the latest stamp of what the chunks held
};

void RunRecovery::Impl::note(const Error& error) {
  if (report_.problems.size() < kMaxProblems) report_.problems.push_back(error);
}

RunRecovery::Impl::Phase RunRecovery::Impl::fail(Error error) {
  note(error);
  output_.discard();
  report_.state = RunState::kNotFinished;
  report_.segment.clear();
  report_.events = 0;
  return Phase::kDone;
}

// The host of a recorder that recovers others' runs may have closed the lock's descriptor.
bool RunRecovery::Impl::holds_lock() {
  return lock_.regain(in_run(kLockName), O_RDWR) && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0;
}

bool RunRecovery::Impl::step() {
  if (lock_ && !holds_lock()) {
    phase_ = fail(Error{ErrorCode::kAlreadyExists,
                        "the lock of '" + report_.path + "' was closed, and is gone or taken",
                        kNoOffset});
  }
  switch (phase_) {
    case Phase::kStart:
      phase_ = start();
      break;
    case Phase::kSeal:
      phase_ = seal();
      break;
    case Phase::kPlan:
      phase_ = plan();
      break;
    case Phase::kWrite:
      phase_ = write();
      break;
    case Phase::kPublish:
      phase_ = publish();
      break;
    case Phase::kDone:
      break;
  }
  if (phase_ == Phase::kDone) {
    close_leftover();
    arena_.reset();
    lock_.reset();
  }
  return phase_ != Phase::kDone;
}

void RunRecovery::Impl::open_arena() {
  const std::string path = in_run(kArenaName);
  GuardedFd fd = GuardedFd::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && errno == ENOENT) return;
  auto opened = fd ? ArenaReader::open_fd(std::move(fd), path)
                   : Result<ArenaReader>(os_error(errno, "open the thread buffers", path));
  if (opened) {
    arena_.emplace(std::move(*opened));
    report_.pid = arena_->identity().pid;
    return;
  }
  take_unreadable_arena(opened.error());
}

// A disk that can't be read is no damage: another attempt may have more luck.
Error RunRecovery::Impl::unreadable_arena() const {
  return Error{ErrorCode::kIo, "cannot read the thread buffers '" + in_run(kArenaName) + "'",
               kNoOffset};
}

void RunRecovery::Impl::take_unreadable_arena(const Error& error) {
  const bool is_blank = error.code == ErrorCode::kTruncated && error.offset == 0;
  if (is_blank && newest_index_ == 0) {
    // Its process died while it made the file: nothing was recorded.
    ::unlink(in_run(kArenaName).c_str());
    return;
  }
  if (error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kTruncated) {
    has_damaged_arena_ = true;
    lose_unknown(error, {});
    return;
  }
  has_unread_arena_ = true;
  note(error);
}

// More is lost than can be counted; the recovered segment says so.
void RunRecovery::Impl::lose_unknown(const Error& error, UnknownLoss loss) {
  note(error);
  report_.has_unknown_loss = true;
  head_.unknown.push_back(loss);
}

// Segments that the journal knows to hold something, and that are gone or shorter. One that ended
// may have been moved or evicted since.
void RunRecovery::Impl::look_for_missing(const std::vector<std::string>& names) {
  const auto newest = arena_->active_segment();
  for (std::uint64_t back = 0; newest && back < 2 && back <= newest->index; ++back) {
    const auto known = arena_->segment(newest->index - back);
    if (!known || known->is_ended || known->bytes == 0) continue;
    const std::string name = segment_name(known->index);
    const auto has = [&](const std::string& file) {
      return std::find(names.begin(), names.end(), file) != names.end();
    };
    if (has(name + ".active") || has(name + ".gz")) continue;  // the former is read below
    struct stat st{};
    const bool is_there = ::lstat(in_run(name).c_str(), &st) == 0;
    if (is_there && static_cast<std::uint64_t>(st.st_size) >= known->bytes) continue;
    lose_unknown(
        Error{ErrorCode::kNotFound,
              "'" + in_run(name) + "' " + (is_there ? "is shorter than" : "is missing;") + " the " +
                  std::to_string(known->bytes) + " bytes that were written to it",
              kNoOffset},
        {arena_->identity().started_ns, 0});
  }
}

RunRecovery::Impl::Phase RunRecovery::Impl::start() {
  if (!is_run(report_.path)) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "'" + report_.path + "' is no run of a recorder; not touched", kNoOffset});
  }
  auto lock = lock_dead_run(report_.path);
  if (!lock && lock.error().code == ErrorCode::kAlreadyExists) {
    report_.state = RunState::kAlive;
    return Phase::kDone;
  }
  if (!lock) return fail(lock.error());
  lock_ = std::move(*lock);
  const auto names = names_in(report_.path).value_or(std::vector<std::string>());
  for (const std::string& name : names) {
    std::uint64_t index = 0;
    bool is_active = false;
    if (!parse_segment_name(name, &index, &is_active)) continue;
    if (is_active) leftovers_.push_back(index);
    if (!name.ends_with(kRecoveringSuffix)) newest_index_ = std::max(newest_index_, index + 1);
  }
  std::sort(leftovers_.rbegin(), leftovers_.rend());
  open_arena();
  if (!arena_) return Phase::kSeal;
  if (!arena_->has_journal() && arena_->has_failed()) return fail(unreadable_arena());
  const JournalRecovery recovery = arena_->recovery();
  if (recovery.state == kRecoveredWaits) return resume_publishing(recovery.index);
  if (!arena_->has_journal()) {
    take_unreadable_arena(Error{
        ErrorCode::kCorrupt, "the thread buffers are damaged: their journal is gone", kNoOffset});
    arena_.reset();
    return Phase::kSeal;
  }
  look_for_missing(names);
  if (arena_->has_lost_chunks()) {
    lose_unknown(Error{ErrorCode::kCorrupt,
                       "the thread buffers are damaged: the states of chunks are gone", kNoOffset},
                 {arena_->identity().started_ns, 0});
  }
  return Phase::kSeal;
}

// An earlier recovery was killed between its mark and its end.
RunRecovery::Impl::Phase RunRecovery::Impl::resume_publishing(std::uint64_t index) {
  index_ = index;
  const std::string from = temporary();
  const std::string to = in_run(segment_name(index));
  if (::access(from.c_str(), F_OK) == 0) {
    if (auto renamed = rename_to_new(from, to); !renamed) return fail(renamed.error());
    report_.segment = to;
  }
  ::unlink(in_run(kArenaName).c_str());
  report_.is_resumed = true;
  report_.state = RunState::kRecovered;
  return Phase::kDone;
}

// Of the leftover that is open; false, and noted: no, or that isn't known.
bool RunRecovery::Impl::begins_like_a_trace(const std::string& path) {
  std::uint8_t head[sizeof format::kMagic] = {};
  const ssize_t n = ::pread(leftover_.get(), head, sizeof head, 0);
  if (n < 0) {
    note(os_error(errno, "read the segment", path).error());
    return false;
  }
  is_foreign_ = std::memcmp(head, format::kMagic, static_cast<std::size_t>(n)) != 0;
  if (is_foreign_) {
    note(Error{ErrorCode::kInvalidArgument, "'" + path + "' is no trace; not touched", 0});
  }
  return !is_foreign_;
}

bool RunRecovery::Impl::open_leftover(std::uint64_t index) {
  const std::string path = in_run(segment_name(index) + ".active");
  leftover_ = GuardedFd::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  struct stat st{};
  if (!leftover_ || ::fstat(leftover_.get(), &st) != 0) {
    note(os_error(errno, "open the segment", path).error());
    return false;
  }
  if (!S_ISREG(st.st_mode)) {
    note(Error{ErrorCode::kInvalidArgument, "'" + path + "' is no regular file", kNoOffset});
    return false;
  }
  leftover_size_ = static_cast<std::uint64_t>(st.st_size);
  leftover_limit_ = leftover_size_;
  read_bytes_ = 0;
  is_foreign_ = false;
  decoder_ = std::make_unique<format::Decoder>(visitor_);
  const auto known = arena_ ? arena_->segment(index) : std::nullopt;
  confirmed_bytes_ = known ? known->bytes : 0;
  if (confirmed_bytes_ == 0 && leftover_size_ != 0 && !begins_like_a_trace(path)) return false;
  if (known && known->bytes <= leftover_size_) {
    leftover_limit_ = known->bytes;
    if (!options_.verifies_segments) read_bytes_ = leftover_limit_;
  }
  return true;
}

void RunRecovery::Impl::close_leftover() {
  leftover_.reset();
  decoder_.reset();
}

// `stays`: it isn't sealed.
RunRecovery::Impl::Phase RunRecovery::Impl::drop_leftover(bool stays) {
  has_unsealed_ = has_unsealed_ || stays;
  close_leftover();
  leftovers_.pop_back();
  return Phase::kSeal;
}

// One piece of one leftover; at its end the cut and the name.
RunRecovery::Impl::Phase RunRecovery::Impl::seal() {
  if (leftovers_.empty()) return Phase::kPlan;
  const std::uint64_t index = leftovers_.back();
  if (!leftover_ && !open_leftover(index)) return drop_leftover(!is_foreign_);
  (void)leftover_.regain(in_run(segment_name(index) + ".active"), O_RDWR);
  const bool is_trusted = !options_.verifies_segments && decoder_->stats().streams == 0 &&
                          read_bytes_ == leftover_limit_;
  std::optional<Error> corrupt;
  if (read_bytes_ < leftover_limit_) {
    std::vector<std::uint8_t> piece(
        std::min<std::uint64_t>(kStepBytes, leftover_limit_ - read_bytes_));
    const ssize_t n =
        ::pread(leftover_.get(), piece.data(), piece.size(), static_cast<off_t>(read_bytes_));
    if (n < 0) {  // a disk that can't be read isn't the end of the file
      note(os_error(errno, "read the segment", in_run(segment_name(index) + ".active")).error());
      return drop_leftover(true);
    }
    if (n > 0) {
      read_bytes_ += static_cast<std::uint64_t>(n);
      piece.resize(static_cast<std::size_t>(n));
      const auto decoded = decoder_->feed(piece);
      if (decoded) return Phase::kSeal;
      corrupt = decoded.error();
    }
  }
  return cut_and_seal(is_trusted, corrupt);
}

// Why not all can be read that should be there; nothing if only a write was cut short.
std::optional<Error> RunRecovery::Impl::damage_of(bool is_trusted,
                                                  const std::optional<Error>& corrupt) const {
  const std::string name = "'" + in_run(segment_name(leftovers_.back())) + "' ";
  const std::uint64_t whole = decoder_->stats().bytes_consumed;
  if (leftover_size_ < confirmed_bytes_) {
    return Error{ErrorCode::kTruncated,
                 name + "ends after " + std::to_string(leftover_size_) + " bytes of the " +
                     std::to_string(confirmed_bytes_) + " that were written to it",
                 leftover_size_};
  }
  const bool is_short = !is_trusted && whole < confirmed_bytes_;
  if (!corrupt && !is_short) return std::nullopt;
  return Error{ErrorCode::kCorrupt,
               name + "can't be read from byte " + std::to_string(whole) + " on" +
                   (corrupt ? ": " + corrupt->message : std::string()),
               whole};
}

// Only what a write left that was under way is cut, never what was confirmed, or can't be judged.
RunRecovery::Impl::Phase RunRecovery::Impl::cut_and_seal(bool is_trusted,
                                                         const std::optional<Error>& corrupt) {
  SealedLeftover sealed;
  const std::uint64_t whole = decoder_->stats().bytes_consumed;
  const auto damage = damage_of(is_trusted, corrupt);
  // Nothing is cut off what doesn't even begin like a trace.
  sealed.bytes = is_trusted   ? leftover_limit_
                 : !damage    ? whole
                 : whole == 0 ? leftover_size_
                              : leftover_limit_;
  sealed.cut_bytes = leftover_size_ - sealed.bytes;
  sealed.path = in_run(segment_name(leftovers_.back()));
  if (damage) {
    const std::uint64_t read_to_ns = visitor_.facts.last_ns;
    lose_unknown(*damage, {read_to_ns - std::min(read_to_ns, kDrainNs), read_to_ns});
    sealed.damaged_at = std::min(whole, sealed.bytes);
  }
  if (auto done = seal_leftover(leftover_.get(), sealed.path, sealed.bytes, sealed.cut_bytes);
      !done) {
    note(done.error());
    return drop_leftover(true);
  }
  if (sealed.bytes != 0) report_.sealed.push_back(std::move(sealed));
  return drop_leftover(false);
}

bool RunRecovery::Impl::needs_segment() const {
  const bool has_loss = std::any_of(head_.lost.begin(), head_.lost.end(),
                                    [](const ArenaLoss& loss) { return loss.count > loss.told; });
  // A segment that was cut off says by the one behind it why.
  return report_.events != 0 || head_.damaged_events != 0 || has_loss || !report_.sealed.empty() ||
         report_.has_unknown_loss;
}

// Behind the newest segment that there is, or that was written to. One that was begun, and has
// nothing, leaves no gap: a gap in the numbers says that a segment is missing.
std::uint64_t RunRecovery::Impl::next_index() const {
  std::uint64_t next = 0;
  for (const std::string& name : names_in(report_.path).value_or(std::vector<std::string>())) {
    std::uint64_t index = 0;
    bool is_active = false;
    if (!parse_segment_name(name, &index, &is_active) || name.ends_with(kRecoveringSuffix))
      continue;
    next = std::max(next, index + 1);
  }
  const auto newest = arena_ ? arena_->active_segment() : std::nullopt;
  if (newest && newest->bytes != 0) next = std::max(next, newest->index + 1);
  return next;
}

RunRecovery::Impl::Phase RunRecovery::Impl::plan() {
  if (has_unread_arena_ || has_unsealed_) {
    // Where to cut what isn't sealed is in the journal, which goes with the buffers.
    report_.state = RunState::kNotFinished;
    return Phase::kDone;
  }
  if (!arena_ && !report_.has_unknown_loss) {
    report_.state = !report_.problems.empty() ? RunState::kNotFinished
                    : report_.sealed.empty()  ? RunState::kNothing
                                              : RunState::kRecovered;
    return Phase::kDone;
  }
  head_.of_segments = visitor_.facts;
  head_.identity.boot_id = report_.boot_id;
  if (arena_) {
    chunks_ = arena_->used_chunks();
    head_.identity = arena_->identity();
    head_.prologue = arena_->prologue();
    head_.lost = arena_->losses();
    head_.raises = arena_->raises();
    const ArenaReader::Off off = arena_->off_stretch();
    if (off.since_ns != 0) head_.unknown.push_back({off.since_ns, off.until_ns, kRecordingOff});
  }
  return begin_segment();
}

RunRecovery::Impl::Phase RunRecovery::Impl::begin_segment() {
  index_ = head_.index = next_index();
  const std::uint64_t most =
      std::uint64_t{head_.identity.chunk_bytes} * chunks_.size() + kHeadBytes;
  if (options_.has_room && !options_.has_room(most)) {
    return fail(Error{ErrorCode::kNoSpace,
                      "the budget has no room for the " + std::to_string(most) + " bytes that '" +
                          report_.path + "' may need; `dial9 recover` does it",
                      kNoOffset});
  }
  if (auto made = output_.create(temporary()); !made) return fail(made.error());
  if (auto written = output_.write(recovered_head(head_)); !written) return fail(written.error());
  return Phase::kWrite;
}

RunRecovery::Impl::Phase RunRecovery::Impl::write() {
  std::uint64_t looked_at = 0;
  for (; next_chunk_ < chunks_.size() && looked_at < kStepBytes; ++next_chunk_) {
    looked_at += arena_->identity().chunk_bytes;
    (void)arena_->read(chunks_[next_chunk_], &view_);
    last_ns_ = std::max({last_ns_, view_.last_ns, view_.opened_ns});
    head_.damaged_events += view_.events_unreadable;
    if (view_.problem) note(*view_.problem);
    if (view_.rest_events == 0) continue;
    if (auto written = output_.write(view_.rest); !written) return fail(written.error());
    report_.events += view_.rest_events;
  }
  return next_chunk_ < chunks_.size() ? Phase::kWrite : Phase::kPublish;
}

RunRecovery::Impl::Phase RunRecovery::Impl::publish() {
  if (arena_ && arena_->has_failed()) return fail(unreadable_arena());
  report_.damaged_events = head_.damaged_events;
  if (!needs_segment()) return finish();
  // What is missing was recorded before the end, and that was not before this.
  const std::uint64_t end_ns = std::max(last_ns_, visitor_.facts.last_ns);
  for (UnknownLoss& loss : head_.unknown) {
    const bool is_known = loss.cause == kRecordingOff && loss.last_ns != 0;
    if (!is_known) loss.last_ns = std::max(loss.last_ns, end_ns);
  }
  if (head_.damaged_events != 0 || !head_.unknown.empty()) {
    if (auto written = output_.write(damage_report(head_)); !written) return fail(written.error());
  }
  if (auto synced = output_.close(options_.syncs); !synced) return fail(synced.error());
  const JournalRecovery mark{kRecoveredWaits, index_};
  const auto marked = arena_ ? arena_->mark_recovered(in_run(kArenaName), mark) : Result<void>();
  if (!marked) return fail(marked.error());
  report_.segment = in_run(segment_name(index_));
  report_.bytes = output_.bytes();
  for (const ArenaLoss& loss : head_.lost) {
    if (loss.count > loss.told) report_.lost.push_back(loss);
  }
  if (auto renamed = rename_to_new(output_.path(), report_.segment); !renamed) {
    // It is marked: the file stays, and the next recovery gives it its name.
    note(renamed.error());
    report_.state = RunState::kNotFinished;
    report_.segment.clear();
    report_.events = 0;
    return Phase::kDone;
  }
  return finish();
}

RunRecovery::Impl::Phase RunRecovery::Impl::finish() {
  if (report_.segment.empty()) output_.discard();
  if (has_damaged_arena_) {
    const auto kept = rename_to_new(in_run(kArenaName), in_run(kDamagedArenaName));
    if (!kept) note(kept.error());
  } else if (arena_ && ::unlink(in_run(kArenaName).c_str()) != 0) {
    note(os_error(errno, "remove", in_run(kArenaName)).error());
  }
  report_.state =
      report_.segment.empty() && report_.sealed.empty() ? RunState::kNothing : RunState::kRecovered;
  return Phase::kDone;
}

RunRecovery::RunRecovery(std::string path, RecoveryOptions options) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  report_.boot_id = std::filesystem::path(path).filename().string();
  report_.path = std::move(path);
  impl_ = std::make_unique<Impl>(std::move(options), &report_);
}

RunRecovery::~RunRecovery() = default;

bool RunRecovery::step() { return impl_->step(); }

RunReport recover_run(const std::string& path, const RecoveryOptions& options) {
  RunRecovery recovery(path, options);
  while (recovery.step()) {
  }
  return recovery.report();
}

}  // namespace dial9::internal
