// The interposed functions find libc's own when the program is loaded: a signal handler may be the
// first to call one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

extern "C" const char* const dial9_interpose_is_linked[];

namespace {

std::uint64_t g_lookups = 0;
int g_wrong = 0;

// Calls what no test runner calls before; each fails at once.
void call_rare_functions(int) {
  const int saved_errno = errno;
  sockaddr address{};
  timespec none{};
  sem_t taken{};
  const auto expect = [](bool is_right) { g_wrong += is_right ? 0 : 1; };
  expect(::connect(-1, &address, sizeof address) == -1 && errno == EBADF);
  expect(::accept(-1, nullptr, nullptr) == -1 && errno == EBADF);
  expect(::recvmsg(-1, nullptr, 0) == -1 && errno == EBADF);
  expect(::clock_nanosleep(CLOCK_MONOTONIC, 0, &none, nullptr) == 0);
  ::sem_init(&taken, 0, 0);
  expect(::sem_timedwait(&taken, &none) == -1 && errno == ETIMEDOUT);
  expect(::waitpid(::getpid(), nullptr, 0) == -1 && errno == ECHILD);
  errno = saved_errno;
}

TEST(Interposed, FunctionsAreFoundBeforeTheFirstCallSoThatASignalHandlerMayMakeIt) {
  ASSERT_NE(dial9_interpose_is_linked[0], nullptr);
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = call_rare_functions;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  EXPECT_GT(g_lookups, 20U) << "this program's dlsym is the one that is called";
  const std::uint64_t lookups = g_lookups;
  ::raise(SIGUSR1);
  EXPECT_EQ(g_lookups, lookups);
  EXPECT_EQ(g_wrong, 0);
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace

// Counts, and calls the real one. Not instrumented: it runs before a sanitizer is ready.
extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle,
                                                              const char* name) noexcept {
  using Lookup = void* (*)(void*, const char*);
  static Lookup real = nullptr;
  ++g_lookups;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (real == nullptr) real = reinterpret_cast<Lookup>(::dlvsym(RTLD_NEXT, "dlsym", version));
  }
  return real == nullptr ? nullptr : real(handle, name);
}
