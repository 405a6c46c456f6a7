// Waits for events, time and other threads. The first group is what workers park in.
// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose/wait.h"

// A zero timeout asks, it doesn't wait.
#define DIAL9_INTERPOSE_TIMED(is_wait, result, name, parameters, arguments)             \
  DIAL9_FIND_AT_LOAD(nullptr, name, result(*) parameters)                               \
  extern "C" __attribute__((visibility("default"))) result name parameters {            \
    static constinit ::dial9::runtime::Place place{#name};                              \
    const auto function = ::dial9::interpose::real_##name.get();                        \
    if (function == nullptr) {                                                          \
      errno = ENOSYS;                                                                   \
      return -1;                                                                        \
    }                                                                                   \
    if (!(is_wait)) return function arguments;                                          \
    const ::dial9::interpose::Wait wait(place, ::dial9::interpose::Wait::Kind::kParks); \
    return function arguments;                                                          \
  }

DIAL9_INTERPOSE_TIMED(timeout != 0, int, epoll_wait,
                      (int fd, epoll_event* events, int count, int timeout),
                      (fd, events, count, timeout))
DIAL9_INTERPOSE_TIMED(timeout != 0, int, epoll_pwait,
                      (int fd, epoll_event* events, int count, int timeout, const sigset_t* mask),
                      (fd, events, count, timeout, mask))
DIAL9_INTERPOSE_TIMED(timeout != 0, int, poll, (pollfd * fds, nfds_t count, int timeout),
                      (fds, count, timeout))
DIAL9_INTERPOSE_TIMED(timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_nsec != 0, int,
                      ppoll,
                      (pollfd * fds, nfds_t count, const timespec* timeout, const sigset_t* mask),
                      (fds, count, timeout, mask))
DIAL9_INTERPOSE_TIMED(timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_usec != 0, int,
                      select,
                      (int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout),
                      (count, reads, writes, errors, timeout))

// glibc keeps two layouts of condition variables apart by version; headers of today mean the newer.
#define DIAL9_COND_VERSION "GLIBC_2.3.2"
DIAL9_INTERPOSE(kParks, ENOSYS, DIAL9_COND_VERSION, int, pthread_cond_wait,
                (pthread_cond_t * cond, pthread_mutex_t* mutex), (cond, mutex))
DIAL9_INTERPOSE(kParks, ENOSYS, DIAL9_COND_VERSION, int, pthread_cond_timedwait,
                (pthread_cond_t * cond, pthread_mutex_t* mutex, const timespec* until),
                (cond, mutex, until))
DIAL9_INTERPOSE(kParks, ENOSYS, nullptr, int, pthread_cond_clockwait,
                (pthread_cond_t * cond, pthread_mutex_t* mutex, clockid_t clock,
                 const timespec* until),
                (cond, mutex, clock, until))

DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, nanosleep, (const timespec* time, timespec* left),
                (time, left))
DIAL9_INTERPOSE(kBlocks, ENOSYS, nullptr, int, clock_nanosleep,
                (clockid_t clock, int flags, const timespec* time, timespec* left),
                (clock, flags, time, left))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, usleep, (useconds_t us), (us))
DIAL9_INTERPOSE(kBlocks, seconds, nullptr, unsigned, sleep, (unsigned seconds), (seconds))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, sem_wait, (sem_t * semaphore), (semaphore))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, sem_timedwait,
                (sem_t * semaphore, const timespec* until), (semaphore, until))
DIAL9_INTERPOSE(kBlocks, ENOSYS, nullptr, int, pthread_join, (pthread_t thread, void** result),
                (thread, result))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, pid_t, waitpid, (pid_t child, int* status, int options),
                (child, status, options))
DIAL9_INTERPOSE(kBlocks, EAI_SYSTEM, nullptr, int, getaddrinfo,
                (const char* node, const char* service, const addrinfo* hints, addrinfo** result),
                (node, service, hints, result))

namespace dial9::interpose {
extern const char waits_anchor;
const char waits_anchor = 1;
}  // namespace dial9::interpose
