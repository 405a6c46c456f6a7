// See worker_process.h. A message is its size (4 bytes) and its bytes.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/bytes.h"
#include "base/os_error.h"

namespace dial9::symbolize {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::size_t kMostMessageBytes = 16 << 20;

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

constexpr int kStartsOfALateOne = 4;
constexpr int kNotebook = 3;
constexpr char kNotebookName[] = "dial9-notebook";
constexpr std::size_t kNotebookBytes = 4096;

// One word. Its reader doesn't map it, for who has it may truncate it. Invalid: there is none, as
// where files may have no byte (RLIMIT_FSIZE), which would be a signal.
UniqueFd make_notebook() {
  rlimit files{};
  if (::getrlimit(RLIMIT_FSIZE, &files) != 0 || files.rlim_cur < kNotebookBytes) return UniqueFd();
  const UniqueFd low(::memfd_create(kNotebookName, MFD_CLOEXEC));
  UniqueFd made(low ? ::fcntl(low.get(), F_DUPFD_CLOEXEC, kNotebook + 1) : -1);
  if (made && ::ftruncate(made.get(), kNotebookBytes) != 0) made.reset();
  return made;
}

std::uint32_t read_notebook(int fd) {
  std::uint32_t word = 0;
  return ::pread(fd, &word, sizeof word, 0) == static_cast<ssize_t>(sizeof word) ? word : 0;
}

// Whoever started this process may have left a file of its own there.
bool has_notebook() {
  const std::string wanted = std::string("/memfd:") + kNotebookName + " (deleted)";
  char text[64];
  const ssize_t size =
      ::readlink(("/proc/self/fd/" + std::to_string(kNotebook)).c_str(), text, sizeof text);
  return size > 0 && std::string_view(text, static_cast<std::size_t>(size)) == wanted;
}

// Of this process, where it answers.
std::uint32_t* g_own_notebook = nullptr;

// No hurry: the asker may be busy for days. Its end is the end of the stream.
Clock::time_point never() { return Clock::now() + std::chrono::hours(24 * 365); }

}  // namespace

void open_notebook() {
  if (!has_notebook()) return;
  void* const page =
      ::mmap(nullptr, kNotebookBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kNotebook, 0);
  if (page != MAP_FAILED) g_own_notebook = static_cast<std::uint32_t*>(page);
}

void note_progress(std::uint32_t number) {
  if (g_own_notebook != nullptr) __atomic_store_n(g_own_notebook, number, __ATOMIC_RELAXED);
}

bool receive_question(Bytes& question) {
  return receive_message(0, question, never()) == Moved::kAll;
}

bool send_answer(std::span<const std::uint8_t> answer) {
  return send_message(0, answer, never()) == Moved::kAll;
}

Result<void> WorkerProcess::start() {
  if (is_asked_ && pid_ != 0) {
    stop();
    --spent_;  // it did nothing wrong
  }
  if (pid_ != 0) return {};
  if (command_.empty()) {
    return make_error(ErrorCode::kUnsupported, "no program for it");
  }
  if (spent_ >= kMostStarts) {
    return make_error(ErrorCode::kLimit, "it failed too often");
  }
  if (is_short() && !pause_.is_over()) return make_error(ErrorCode::kIo, shortage_);
  shortage_.clear();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return refused(errno, "make", "a pair of sockets");
  }
  UniqueFd own(ends[0]);
  const UniqueFd other(ends[1]);
  std::vector<char*> arguments;
  for (std::string& text : command_) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& text : variables_) variables.push_back(text.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // Each may lack memory.
  int failed = ::posix_spawn_file_actions_adddup2(&actions, other.get(), 0);
  if (failed == 0) failed = ::posix_spawn_file_actions_adddup2(&actions, other.get(), 1);
  UniqueFd notebook = make_notebook();
  if (failed == 0 && notebook) {
    failed = ::posix_spawn_file_actions_adddup2(&actions, notebook.get(), kNotebook);
  } else if (failed == 0) {  // what this process has there is no business of the other one's
    failed = ::posix_spawn_file_actions_addclose(&actions, kNotebook);
  }
  if (failed == 0) {
    failed =
        ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    pid_ = 0;
    return refused(failed, "start", arguments[0]);
  }
  pause_.end();
  socket_ = std::move(own);
  notebook_ = std::move(notebook);
  ++starts_;
  ++spent_;
  return {};
}

std::unexpected<Error> WorkerProcess::refused(int error_number, std::string_view action,
                                              std::string_view subject) {
  const bool is_passing = is_shortage(error_number);
  std::string message = os_error(error_number, action, subject,
                                 is_passing ? "it is tried again later" : "")
                            .error()
                            .message;
  if (is_passing) {
    shortage_ = message;
    pause_.begin();
  }
  return make_error(ErrorCode::kIo, std::move(message));
}

void WorkerProcess::stop() {
  socket_.reset();
  is_asked_ = false;
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  last_noted_ = read_notebook(notebook_.get());
}

std::unexpected<Error> WorkerProcess::failed(bool is_late, int within_ms) {
  stop();
  if (is_late) {
    spent_ += kStartsOfALateOne - 1;
    return make_error(ErrorCode::kLimit,
                      "it took longer than " + std::to_string(within_ms / 1000) + " s");
  }
  return make_error(ErrorCode::kIo, "the process that does it ended");
}

Result<void> WorkerProcess::send(std::span<const std::uint8_t> question, int within_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(within_ms);
  is_asked_ = true;
  const Moved moved = send_message(socket_.get(), question, until);
  if (moved != Moved::kAll) return failed(moved == Moved::kLate, within_ms);
  return {};
}

Result<Bytes> WorkerProcess::receive(int within_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(within_ms);
  Bytes answer;
  const Moved moved = receive_message(socket_.get(), answer, until);
  if (moved != Moved::kAll) return failed(moved == Moved::kLate, within_ms);
  is_asked_ = false;
  return answer;
}

Result<Bytes> WorkerProcess::ask(std::span<const std::uint8_t> question, int within_ms) {
  if (const auto sent = send(question, within_ms); !sent) return std::unexpected(sent.error());
  return receive(within_ms);
}

}  // namespace dial9::symbolize
