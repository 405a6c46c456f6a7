// See last_thread.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/last_thread.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/unique_fd.h"

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

}  // namespace

// A main thread that ended stays among the threads, but its memory, and so its program, is gone.
bool is_last_thread() noexcept {
  constexpr nlink_t kLinksOfTwo = 2 + 2;
  struct stat facts{};
  if (::stat("/proc/self/task", &facts) != 0 || facts.st_nlink != kLinksOfTwo) return false;
  char ignored;
  return ::readlink("/proc/self/exe", &ignored, 1) < 0 && errno == ENOENT;
}

void end_as_the_main_thread_did() noexcept {
  const int status = main_thread_status();
  if (WIFSIGNALED(status)) ::kill(::getpid(), WTERMSIG(status));  // strict seccomp ends a thread so
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ::syscall(SYS_exit, WEXITSTATUS(status));
}

}  // namespace dial9::internal
