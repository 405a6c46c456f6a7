// See dwarf_worker.h. A message is its size (4 bytes) and its bytes.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/bytes.h"
#include "base/os_error.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/frame_bytes.h"

namespace dial9::symbolize {
namespace {

constexpr std::uint32_t kOpen = 1;
constexpr std::uint32_t kFrames = 2;
constexpr std::size_t kMostMessageBytes = 16 << 20;
constexpr std::size_t kMostAnswerBytes = 8 << 20;  // behind it addresses have no frames
constexpr rlim_t kMostMemoryBytes = rlim_t{1} << 30;
constexpr std::size_t kMostKeptBytes = 64 << 20;
constexpr rlim_t kMostCpuSeconds = 300;
constexpr std::size_t kMostFiles = 8192;

using Clock = std::chrono::steady_clock;

// Waits until the socket can be read or written.
bool wait_for(int fd, short what, Clock::time_point until) {
  for (;;) {
    constexpr std::int64_t kHourMs = 3'600'000;  // longer ones don't fit an int
    const std::int64_t left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd entry{fd, what, 0};
    const auto wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, kHourMs));
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return true;
    const bool is_over = ready == 0 ? left <= kHourMs : errno != EINTR;
    if (is_over) return false;
  }
}

enum class Moved : std::uint8_t { kAll, kEnded, kLate };

// All of `bytes`, by `step(rest)`: recv or send.
template <class Span, class Step>
Moved move_all(int fd, short what, Span bytes, Clock::time_point until, Step step) {
  while (!bytes.empty()) {
    const ssize_t n = step(bytes);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_for(fd, what, until)) return Moved::kLate;
    } else {
      return Moved::kEnded;
    }
  }
  return Moved::kAll;
}

Moved read_all(int fd, std::span<std::uint8_t> to, Clock::time_point until) {
  return move_all(fd, POLLIN, to, until, [fd](std::span<std::uint8_t> rest) {
    return ::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT);
  });
}

Moved write_all(int fd, std::span<const std::uint8_t> from, Clock::time_point until) {
  return move_all(fd, POLLOUT, from, until, [fd](std::span<const std::uint8_t> rest) {
    return ::send(fd, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

Moved send_message(int fd, std::span<const std::uint8_t> bytes, Clock::time_point until) {
  std::vector<std::uint8_t> message(sizeof(std::uint32_t));
  store_le(message.data(), static_cast<std::uint32_t>(bytes.size()));
  message.insert(message.end(), bytes.begin(), bytes.end());
  return write_all(fd, message, until);
}

// A message that is too large is an end.
Moved receive_message(int fd, Bytes& bytes, Clock::time_point until) {
  std::uint8_t head[sizeof(std::uint32_t)];
  if (const Moved moved = read_all(fd, head, until); moved != Moved::kAll) return moved;
  const std::size_t size = load_le<std::uint32_t>(head);
  if (size > kMostMessageBytes) return Moved::kEnded;
  bytes.resize(size);
  return read_all(fd, bytes, until);
}

// ---- The worker's side.

struct OpenFile {
  UniqueFd fd;
  DwarfFile dwarf;
};

// The file may be another one than the asker saw.
Result<OpenFile> open_file(const std::string& path, const std::string& build_id) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return os_error(errno, "open", path);
  const FileReader reader = reader_of(fd.get());
  const auto elf = ElfFile::open(reader, regular_file_bytes(fd.get()).value_or(0));
  if (!elf) return std::unexpected(elf.error());
  if (elf->build_id() != build_id) return make_error(ErrorCode::kCorrupt, "it was replaced");
  auto dwarf = DwarfFile::open(fd.get(), kMostKeptBytes);
  if (!dwarf) return std::unexpected(dwarf.error());
  return OpenFile{std::move(fd), std::move(*dwarf)};
}

void answer_open(ByteReader& request, std::vector<OpenFile>& files, ByteWriter& answer) {
  const std::string path = request.text();
  const std::string build_id = request.text();
  Result<OpenFile> file = files.size() < kMostFiles
                              ? open_file(path, build_id)
                              : make_error(ErrorCode::kLimit, "too many files");
  if (!file) {
    answer.u32(static_cast<std::uint32_t>(file.error().code) + 1);
    answer.text(file.error().message);
    return;
  }
  files.push_back(std::move(*file));
  answer.u32(0);
  answer.u32(static_cast<std::uint32_t>(files.size() - 1));
}

void answer_frames(ByteReader& request, std::vector<OpenFile>& files, ByteWriter& answer) {
  const std::uint32_t file = request.u32();
  const std::uint32_t count = request.u32();
  for (std::uint32_t i = 0; i < count && request.is_whole(); ++i) {
    const std::uint64_t address = request.u64();
    const bool is_answered = file < files.size() && answer.bytes().size() < kMostAnswerBytes;
    answer.frames(is_answered ? files[file].dwarf.frames(address) : std::vector<Frame>());
  }
}

void limit_itself() {
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  const auto limit = [](__rlimit_resource resource, rlim_t most) {
    rlimit now{};
    if (::getrlimit(resource, &now) != 0) return;
    now.rlim_cur = std::min(now.rlim_cur, most);
    now.rlim_max = std::min(now.rlim_max, most);
    (void)::setrlimit(resource, &now);
  };
#if !defined(DIAL9_SANITIZED)  // their shadow is far larger
  limit(RLIMIT_DATA, kMostMemoryBytes);
#endif
  limit(RLIMIT_CPU, kMostCpuSeconds);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
}

}  // namespace

int run_dwarf_worker() {
  limit_itself();
  std::vector<OpenFile> files;
  for (Bytes bytes;;) {
    // No hurry: the asker may be busy for days. Its end is the end of the stream.
    const auto never = Clock::now() + std::chrono::hours(24 * 365);
    if (receive_message(0, bytes, never) != Moved::kAll) return 0;
    ByteReader request(bytes);
    ByteWriter answer;
    switch (request.u32()) {
      case kOpen:
        answer_open(request, files, answer);
        break;
      case kFrames:
        answer_frames(request, files, answer);
        break;
      default:
        return 1;
    }
    if (!request.is_whole() || send_message(0, answer.bytes(), never) != Moved::kAll) return 1;
  }
}

// ---- The asker's side.

Result<void> DwarfWorker::start() {
  if (pid_ != 0) return {};
  if (options_.command.empty()) {
    return make_error(ErrorCode::kUnsupported, "no program to read debug information");
  }
  if (workers_ >= kMostWorkers) {
    return make_error(ErrorCode::kLimit, "reading debug information failed too often");
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_error(errno, "make", "a pair of sockets");
  }
  UniqueFd own(ends[0]);
  const UniqueFd other(ends[1]);
  std::vector<char*> arguments;
  for (std::string& text : options_.command) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, other.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, other.get(), 1);
  const int failed =
      ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    pid_ = 0;
    return os_error(failed, "start", arguments[0]);
  }
  socket_ = std::move(own);
  ++workers_;
  return {};
}

void DwarfWorker::stop() {
  socket_.reset();
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

Result<Bytes> DwarfWorker::ask(std::span<const std::uint8_t> request, int within_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(within_ms);
  Bytes answer;
  Moved moved = send_message(socket_.get(), request, until);
  if (moved == Moved::kAll) moved = receive_message(socket_.get(), answer, until);
  if (moved == Moved::kAll) return answer;
  stop();
  if (moved == Moved::kLate) {
    return make_error(ErrorCode::kLimit, "reading its debug information took longer than " +
                                             std::to_string(within_ms / 1000) + " s");
  }
  return make_error(ErrorCode::kIo, "reading its debug information ended the reader");
}

Result<std::uint32_t> DwarfWorker::open_in_worker(const File& file) {
  if (const auto started = start(); !started) return std::unexpected(started.error());
  ByteWriter request;
  request.u32(kOpen);
  request.text(file.path);
  request.text(file.build_id);
  const Result<Bytes> bytes = ask(request.bytes(), options_.open_ms);
  if (!bytes) return std::unexpected(bytes.error());
  ByteReader answer(*bytes);
  const std::uint32_t failed = answer.u32();
  const std::string message = failed != 0 ? answer.text() : "";
  const std::uint32_t number = failed == 0 ? answer.u32() : 0;
  if (!answer.is_whole() || !answer.is_at_end()) {
    stop();
    return make_error(ErrorCode::kIo, "the reader's answer makes no sense");
  }
  if (failed == 0) return number;
  const bool is_code = failed - 1 <= static_cast<std::uint32_t>(ErrorCode::kCancelled);
  return make_error(is_code ? static_cast<ErrorCode>(failed - 1) : ErrorCode::kIo, message);
}

Result<std::uint32_t> DwarfWorker::open(const std::string& path, const std::string& build_id) {
  File file{path, build_id};
  const Result<std::uint32_t> number = open_in_worker(file);
  if (!number) return std::unexpected(number.error());
  file.worker = workers_;
  file.number = *number;
  files_.push_back(std::move(file));
  return static_cast<std::uint32_t>(files_.size() - 1);
}

Result<std::vector<std::vector<Frame>>> DwarfWorker::frames(
    std::uint32_t number, std::span<const std::uint64_t> addresses) {
  File& file = files_[number];
  if (pid_ == 0 || file.worker != workers_) {  // another file ended the one that had it
    const Result<std::uint32_t> again = open_in_worker(file);
    if (!again) return std::unexpected(again.error());
    file.worker = workers_;
    file.number = *again;
  }
  ByteWriter request;
  request.u32(kFrames);
  request.u32(file.number);
  request.u32(static_cast<std::uint32_t>(addresses.size()));
  for (const std::uint64_t address : addresses) request.u64(address);
  const Result<Bytes> bytes = ask(request.bytes(), options_.look_ms);
  if (!bytes) return std::unexpected(bytes.error());
  ByteReader answer(*bytes);
  std::vector<std::vector<Frame>> found;
  for (std::size_t i = 0; i < addresses.size(); ++i) found.push_back(answer.frames());
  if (!answer.is_whole() || !answer.is_at_end()) {
    stop();
    return make_error(ErrorCode::kIo, "the reader's answer makes no sense");
  }
  return found;
}

}  // namespace dial9::symbolize
