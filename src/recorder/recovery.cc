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
#include <filesystem>
#include <optional>

#include "base/os_error.h"
#include "recorder/directory_names.h"
#include "recorder/guarded_fd.h"
#include "recorder/recovered_stream.h"
#include "recorder/recovery_files.h"
#include "recorder/run_directory.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kStepBytes = 1 << 20;
constexpr std::size_t kMaxProblems = 16;
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
  bool open_leftover(std::uint64_t index);
  void close_leftover();
  bool needs_segment() const;
  std::string in_run(const std::string& name) const { return report_.path + "/" + name; }
  std::string temporary() const { return in_run(segment_name(index_) + kRecoveringSuffix); }

  const RecoveryOptions options_;
  RunReport& report_;
  Phase phase_ = Phase::kStart;
  GuardedFd lock_;
  std::optional<ArenaReader> arena_;
  bool has_unread_arena_ = false;         // there is one, and it stays
  bool has_unsealed_ = false;             // a leftover stays, and needs the journal another time
  std::vector<std::uint64_t> leftovers_;  // `.active` segments, newest first
  std::uint64_t newest_index_ = 0;        // + 1; 0: no segment was ever begun
  // The leftover that is being read.
  GuardedFd leftover_;
  std::uint64_t leftover_size_ = 0;
  std::uint64_t leftover_limit_ = 0;  // what its journal calls whole
  std::uint64_t read_bytes_ = 0;
  EventCounter visitor_;
  std::unique_ptr<format::Decoder> decoder_;
  // The segment that is being made.
  std::uint64_t index_ = 0;
  std::vector<std::uint32_t> chunks_;  // in order of time, from next_chunk_ on to be written
  std::size_t next_chunk_ = 0;
  RecoveredHead head_;
  OutputFile output_;
  ChunkView view_;
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
  GuardedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT) return;
  auto opened = fd ? ArenaReader::open_fd(std::move(fd), path)
                   : Result<ArenaReader>(os_error(errno, "open the thread buffers", path));
  if (opened) {
    arena_.emplace(std::move(*opened));
    report_.pid = arena_->identity().pid;
    return;
  }
  if (opened.error().code == ErrorCode::kTruncated && opened.error().offset == 0) {
    ::unlink(path.c_str());  // its process died while it made the file: nothing was recorded
    return;
  }
  has_unread_arena_ = true;
  note(opened.error());
}

RunRecovery::Impl::Phase RunRecovery::Impl::start() {
  auto lock = lock_dead_run(report_.path);
  if (!lock && lock.error().code == ErrorCode::kAlreadyExists) {
    report_.state = RunState::kAlive;
    return Phase::kDone;
  }
  if (!lock) return fail(lock.error());
  lock_ = std::move(*lock);
  open_arena();
  for (const std::string& name : names_in(report_.path).value_or(std::vector<std::string>())) {
    std::uint64_t index = 0;
    bool is_active = false;
    if (!parse_segment_name(name, &index, &is_active)) continue;
    if (is_active) leftovers_.push_back(index);
    if (!name.ends_with(kRecoveringSuffix)) newest_index_ = std::max(newest_index_, index + 1);
  }
  std::sort(leftovers_.rbegin(), leftovers_.rend());
  if (!arena_) return Phase::kSeal;
  const JournalRecovery recovery = arena_->recovery();
  if (recovery.state == kRecoveredWaits) return resume_publishing(recovery.index);
  if (const auto newest = arena_->active_segment()) {
    newest_index_ = std::max(newest_index_, newest->index + 1);
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

bool RunRecovery::Impl::open_leftover(std::uint64_t index) {
  const std::string path = in_run(segment_name(index) + ".active");
  leftover_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
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
  decoder_ = std::make_unique<format::Decoder>(visitor_);
  const auto known = arena_ ? arena_->segment(index) : std::nullopt;
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

// One piece of one leftover; at its end the cut and the name.
RunRecovery::Impl::Phase RunRecovery::Impl::seal() {
  if (leftovers_.empty()) return Phase::kPlan;
  const std::uint64_t index = leftovers_.back();
  if (!leftover_ && !open_leftover(index)) {
    has_unsealed_ = true;
    close_leftover();
    leftovers_.pop_back();
    return Phase::kSeal;
  }
  (void)leftover_.regain(in_run(segment_name(index) + ".active"), O_RDWR);
  const bool is_trusted = !options_.verifies_segments && decoder_->stats().streams == 0 &&
                          read_bytes_ == leftover_limit_;
  bool is_read = read_bytes_ >= leftover_limit_;
  if (!is_read) {
    std::vector<std::uint8_t> piece(
        std::min<std::uint64_t>(kStepBytes, leftover_limit_ - read_bytes_));
    const ssize_t n =
        ::pread(leftover_.get(), piece.data(), piece.size(), static_cast<off_t>(read_bytes_));
    if (n > 0) {
      read_bytes_ += static_cast<std::uint64_t>(n);
      piece.resize(static_cast<std::size_t>(n));
      if (decoder_->feed(piece)) return Phase::kSeal;
    } else if (n < 0) {  // a disk that can't be read isn't the end of the file
      note(os_error(errno, "read the segment", in_run(segment_name(index) + ".active")).error());
      has_unsealed_ = true;
      close_leftover();
      leftovers_.pop_back();
      return Phase::kSeal;
    }
    is_read = true;  // its end, or what can't be followed
  }
  SealedLeftover sealed;
  sealed.bytes = is_trusted ? leftover_limit_ : decoder_->stats().bytes_consumed;
  sealed.cut_bytes = leftover_size_ - sealed.bytes;
  sealed.path = in_run(segment_name(index));
  if (auto done = seal_leftover(leftover_.get(), sealed.path, sealed.bytes, sealed.cut_bytes);
      !done) {
    note(done.error());
    has_unsealed_ = true;
  } else {
    report_.sealed.push_back(std::move(sealed));
  }
  close_leftover();
  leftovers_.pop_back();
  return Phase::kSeal;
}

bool RunRecovery::Impl::needs_segment() const {
  const bool has_loss = std::any_of(head_.lost.begin(), head_.lost.end(),
                                    [](const ArenaLoss& loss) { return loss.count > loss.told; });
  // A segment that was cut off says by the one behind it why.
  return report_.events != 0 || head_.damaged_events != 0 || has_loss || !report_.sealed.empty();
}

RunRecovery::Impl::Phase RunRecovery::Impl::plan() {
  if (!arena_) {
    report_.state = has_unread_arena_ || !report_.problems.empty() ? RunState::kNotFinished
                    : report_.sealed.empty()                       ? RunState::kNothing
                                                                   : RunState::kRecovered;
    return Phase::kDone;
  }
  if (has_unsealed_) {  // where to cut it is in the journal, which goes with the buffers
    report_.state = RunState::kNotFinished;
    return Phase::kDone;
  }
  index_ = newest_index_;
  chunks_ = arena_->used_chunks();
  head_.identity = arena_->identity();
  head_.prologue = arena_->prologue();
  head_.lost = arena_->losses();
  const std::uint64_t most =
      std::uint64_t{arena_->identity().chunk_bytes} * chunks_.size() + kHeadBytes;
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
    head_.damaged_events += view_.events_unreadable;
    if (view_.problem) note(*view_.problem);
    if (view_.rest_events == 0) continue;
    if (auto written = output_.write(view_.rest); !written) return fail(written.error());
    report_.events += view_.rest_events;
  }
  return next_chunk_ < chunks_.size() ? Phase::kWrite : Phase::kPublish;
}

RunRecovery::Impl::Phase RunRecovery::Impl::publish() {
  report_.damaged_events = head_.damaged_events;
  if (!needs_segment()) return finish();
  if (head_.damaged_events != 0) {
    if (auto written = output_.write(damage_report(head_)); !written) return fail(written.error());
  }
  if (auto synced = output_.close(options_.syncs); !synced) return fail(synced.error());
  const std::string arena_path = in_run(kArenaName);
  const JournalRecovery mark{kRecoveredWaits, index_};
  if (auto marked = arena_->mark_recovered(arena_path, mark); !marked) return fail(marked.error());
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
  if (::unlink(in_run(kArenaName).c_str()) != 0) {
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
