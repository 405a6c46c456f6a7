// A program that knows nothing of dial9: one thread waits for an event, another for a condition.
// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <mutex>
#include <thread>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

int main() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int event_fd = eventfd(0, EFD_CLOEXEC);
  epoll_event interest{EPOLLIN, {}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, event_fd, &interest);
  std::mutex mutex;
  std::condition_variable condition;
  bool is_done = false;
  std::thread waiter([&] {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return is_done; });
  });
  std::thread writer([&] {
    const std::uint64_t one = 1;
    (void)!write(event_fd, &one, sizeof one);
  });
  epoll_event event;
  const int count = epoll_wait(epoll, &event, 1, -1);
  {
    const std::lock_guard lock(mutex);
    is_done = true;
  }
  condition.notify_all();
  waiter.join();
  writer.join();
  return count == 1 ? 0 : 1;
}
