// See in_child.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/testing/in_child.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>

namespace dial9::internal::testing {

bool deny_call(unsigned number, int error) {
  const auto answer = static_cast<unsigned>(error) | SECCOMP_RET_ERRNO;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{4, filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool deny_perf(int error) { return deny_call(SYS_perf_event_open, error); }

bool become_nobody() {
  constexpr unsigned kNobody = 65'534;
  return ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
         ::setresuid(kNobody, kNobody, kNobody) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

int in_child(const std::function<int()>& run, bool has_fresh_signals) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (has_fresh_signals) ::signal(SIGPROF, SIG_DFL);
    ::_exit(run());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int open_perf_events() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry.path(), ignored);
    count += target == "anon_inode:[perf_event]" ? 1 : 0;
  }
  return count;
}

}  // namespace dial9::internal::testing
