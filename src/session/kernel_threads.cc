// See kernel_threads.h.
// SPDX-License-Identifier: Apache-2.0
#include "session/kernel_threads.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/whole_file.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read_text(const std::string& path) {
  Result<std::string> text = read_whole_file(path);
  // A read that fails half-way (the thread is gone, or hidden) leaves nothing.
  if (!text || text->empty()) return std::nullopt;
  return std::move(*text);
}

template <class T>
std::optional<T> number_at_start(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The value of "Key:\tvalue" in a status file, to the line's end.
std::string_view status_value(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':') {
      return line.substr(key.size() + 1);
    }
    at = end + 1;
  }
  return {};
}

// The last number of "NSpid:\t70\t7": the id in the innermost namespace.
std::optional<std::uint32_t> inner_id(std::string_view status) {
  const std::string_view ids = status_value(status, "NSpid");
  const std::size_t last = ids.find_last_of("\t ");
  return last == std::string_view::npos ? std::nullopt
                                        : number_at_start<std::uint32_t>(ids.substr(last));
}

std::string_view without_line_end(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text;
}

// nullopt: the thread is gone.
std::optional<KernelThread> read_thread(const std::string& directory, std::uint32_t tid) {
  KernelThread thread;
  thread.tid = thread.inner_tid = tid;
  const auto stat = read_text(directory + "/stat");
  if (!stat || !parse_stat(*stat, thread)) return std::nullopt;
  if (const auto status = read_text(directory + "/status")) parse_status(*status, thread);
  if (const auto sched = read_text(directory + "/schedstat")) parse_schedstat(*sched, thread);
  if (const auto wchan = read_text(directory + "/wchan")) thread.wchan = parse_wchan(*wchan);
  if (const auto call = read_text(directory + "/syscall")) thread.syscall = parse_syscall(*call);
  return thread;
}

Result<KernelProcess> read_head(const std::string& directory, std::uint32_t pid) {
  const std::string who = "process " + std::to_string(pid);
  const auto status = read_text(directory + "/status");
  if (!status) {
    return make_error(ErrorCode::kNotFound,
                      "there is no " + who +
                          "; in a container give the id as seen here (ps, pgrep), and where /proc "
                          "hides others (hidepid) run it as root");
  }
  KernelProcess process;
  process.pid = process.inner_pid = pid;
  process.name = without_line_end(status_value(*status, "Name"));
  while (process.name.starts_with('\t')) process.name.erase(0, 1);
  process.uid = number_at_start<std::uint32_t>(status_value(*status, "Uid")).value_or(0);
  process.inner_pid = inner_id(*status).value_or(pid);
  return process;
}

}  // namespace

bool parse_stat(std::string_view text, KernelThread& out) {
  // The name is in brackets and may hold any character, brackets too.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text.size()) {
    return false;
  }
  out.name = text.substr(open + 1, close - open - 1);
  out.state = text[close + 2];
  return true;
}

void parse_status(std::string_view text, KernelThread& out) {
  out.voluntary_switches =
      number_at_start<std::uint64_t>(status_value(text, "voluntary_ctxt_switches"));
  out.involuntary_switches =
      number_at_start<std::uint64_t>(status_value(text, "nonvoluntary_ctxt_switches"));
  out.inner_tid = inner_id(text).value_or(out.inner_tid);
}

void parse_schedstat(std::string_view text, KernelThread& out) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return;
  out.run_ns = number_at_start<std::uint64_t>(text);
  out.wait_ns = number_at_start<std::uint64_t>(text.substr(space));
}

std::optional<std::string> parse_wchan(std::string_view text) {
  text = without_line_end(text);
  if (text.empty() || text == "0") return std::nullopt;
  return std::string(text);
}

std::optional<std::int64_t> parse_syscall(std::string_view text) {
  const auto number = number_at_start<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

Result<KernelProcess> read_kernel_process(const std::string& proc, std::uint32_t pid) {
  const std::string directory = proc + "/" + std::to_string(pid);
  Result<KernelProcess> process = read_head(directory, pid);
  if (!process) return process;
  std::error_code error;
  for (fs::directory_iterator entry(directory + "/task", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto tid = number_at_start<std::uint32_t>(name);
    if (!tid) continue;
    if (auto thread = read_thread(entry->path().string(), *tid)) {
      process->threads.push_back(std::move(*thread));
    }
  }
  if (process->threads.empty()) {
    return make_error(ErrorCode::kNotFound,
                      "process " + std::to_string(pid) + " ended while it was looked at");
  }
  std::sort(process->threads.begin(), process->threads.end(),
            [](const KernelThread& a, const KernelThread& b) { return a.tid < b.tid; });
  return process;
}

std::uint32_t living_thread(const KernelProcess& process) {
  for (const KernelThread& thread : process.threads) {
    if (thread.state != 'Z' && thread.state != 'X') return thread.tid;
  }
  return 0;
}

namespace {

struct Name {
  std::int64_t number;
  const char* name;
};
constexpr Name kNames[] = {
    {SYS_futex, "futex"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_openat, "openat"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_sendto, "sendto"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_mprotect, "mprotect"},
    {SYS_clock_gettime, "clock_gettime"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_ioctl, "ioctl"},
    {SYS_lseek, "lseek"},
    {SYS_close, "close"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_fallocate, "fallocate"},
    {SYS_getdents64, "getdents64"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendfile, "sendfile"},
    {SYS_splice, "splice"},
    {SYS_shutdown, "shutdown"},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_poll
    {SYS_poll, "poll"},
#endif
#ifdef SYS_select
    {SYS_select, "select"},
#endif
#ifdef SYS_pause
    {SYS_pause, "pause"},
#endif
#ifdef SYS_open
    {SYS_open, "open"},
#endif
};

}  // namespace

std::string syscall_name(std::int64_t number) {
  for (const Name& known : kNames) {
    if (known.number == number) return known.name;
  }
  return "syscall " + std::to_string(number);
}

std::string state_name(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "in an uninterruptible wait";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a tracer";
    case 'Z':
      return "a zombie";
    case 'X':
      return "dead";
    case 'I':
      return "idle";
    default:
      return std::string("in state ") + state;
  }
}

}  // namespace dial9::internal
