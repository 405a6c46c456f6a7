// Alternate signal stacks for threads that ask for one. A stack that is there already (Go's, a
// JVM's, a sanitizer's) is never replaced, and at the thread's end only ours is taken away.
// Spec: docs/spec/recorder.md, "Crashes".
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/os_error.h"
#include "dial9/crash.h"
#include "sources/crash_handler.h"

namespace dial9 {
namespace {

constinit pthread_once_t g_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key = 0;
constinit bool g_has_key = false;

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// The kernel's own frame (AT_MINSIGSTKSZ: 3 KiB with AVX-512), and room for handlers.
std::size_t stack_bytes() noexcept {
  const std::size_t frame = ::getauxval(AT_MINSIGSTKSZ);
  const std::size_t page = page_bytes();
  return (frame + internal::kCrashStackBytes + page - 1) / page * page;
}

void give_back(void* memory) noexcept {
  auto* base = static_cast<char*>(memory);
  stack_t now{};
  if (::sigaltstack(nullptr, &now) == 0 && now.ss_sp == base + page_bytes()) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    // Refused while the thread runs on it: the memory stays.
    if (::sigaltstack(&none, nullptr) != 0) return;
  }
  ::munmap(base, page_bytes() + stack_bytes());
}

void make_key() noexcept { g_has_key = ::pthread_key_create(&g_key, give_back) == 0; }

}  // namespace

Status add_crash_stack() noexcept {
  try {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0) {
      return Status::failure(os_error(errno, "look at", "the signal stack").error().message);
    }
    if ((now.ss_flags & SS_DISABLE) == 0) return {};
    ::pthread_once(&g_once, make_key);
    if (!g_has_key) return Status::failure("no alternate signal stack: no thread key is left");
    const std::size_t guard = page_bytes();
    void* memory = ::mmap(nullptr, guard + stack_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
      return Status::failure(os_error(errno, "map", "an alternate signal stack").error().message);
    }
    stack_t ours{};
    ours.ss_sp = static_cast<char*>(memory) + guard;
    ours.ss_size = stack_bytes();
    if (::mprotect(memory, guard, PROT_NONE) != 0 || ::sigaltstack(&ours, nullptr) != 0 ||
        ::pthread_setspecific(g_key, memory) != 0) {
      const int error = errno;
      give_back(memory);
      return Status::failure(os_error(error, "set", "an alternate signal stack").error().message);
    }
    return {};
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
