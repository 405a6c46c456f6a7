// See last_thread.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/last_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/unique_fd.h"
#include "recorder/fork_child.h"

namespace dial9::internal {
namespace {

// The last field of the main thread's line: its exit code as wait() has it. 0: unknown, too.
int main_thread_status() noexcept {
  char line[1024];
  const UniqueFd fd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd ? ::read(fd.get(), line, sizeof line - 1) : -1;
  if (n <= 0) return 0;
  line[n] = '\0';
  const std::size_t last = std::string_view(line).rfind(' ');
  return last == std::string_view::npos ? 0 : std::atoi(line + last);
}

constexpr std::string_view kCollectorName = "dial9-collect";

// A dead main thread is no collector's and isn't asked for. One that ended meanwhile is none: the
// next look tells.
bool is_collector(pid_t tid) noexcept {
  const int policy = ::sched_getscheduler(tid);
  if (policy < 0 || (policy & SCHED_RESET_ON_FORK) == 0) return false;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  char name[32];
  const ssize_t n = fd ? ::read(fd.get(), name, sizeof name) : -1;
  return n > 0 && std::string_view(name, static_cast<std::size_t>(n) - 1) == kCollectorName;
}

bool are_all_others_collectors() noexcept {
  const ForkPause pause;
  const auto close = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> tasks(::opendir("/proc/self/task"), close);
  if (tasks == nullptr) return false;
  const auto own = static_cast<pid_t>(::syscall(SYS_gettid));
  errno = 0;
  while (const dirent* entry = ::readdir(tasks.get())) {
    const pid_t tid = std::atoi(entry->d_name);  // 0: the directory itself or the one above
    if (tid != 0 && tid != own && tid != ::getpid() && !is_collector(tid)) return false;
    errno = 0;
  }
  return errno == 0;
}

}  // namespace

void mark_collector_thread() noexcept {
  ::pthread_setname_np(::pthread_self(), kCollectorName.data());
  const int policy = ::sched_getscheduler(0);
  sched_param param{};
  if (policy < 0 || ::sched_getparam(0, &param) != 0) return;
  (void)::sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param);
}

// A main thread that ended stays among the threads, but its memory, and so its program, is gone.
bool is_last_thread() noexcept {
  constexpr nlink_t kLinksOfTwo = 2 + 2;
  constexpr nlink_t kMostLinks = kLinksOfTwo + 7;  // of eight copies
  struct stat facts{};
  if (::stat("/proc/self/task", &facts) != 0 || facts.st_nlink > kMostLinks) return false;
  if (facts.st_nlink < kLinksOfTwo) return false;
  char ignored;
  if (::readlink("/proc/self/exe", &ignored, 1) >= 0 || errno != ENOENT) return false;
  return facts.st_nlink == kLinksOfTwo || are_all_others_collectors();
}

void end_as_the_main_thread_did() noexcept {
  const int status = main_thread_status();
  if (WIFSIGNALED(status)) ::kill(::getpid(), WTERMSIG(status));  // strict seccomp ends a thread so
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ::syscall(SYS_exit, WEXITSTATUS(status));
}

}  // namespace dial9::internal
