// Calls that block inside a handler, contended locks, and that the interposed functions behave as
// libc's own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "dial9/event.h"
#include "dial9/lock_stacks.h"
#include "net.h"
#include "recording.h"

namespace dial9::test {
namespace {

using namespace std::chrono_literals;

std::uint32_t this_tid() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

// Every wait counts, so that no test needs a long one.
class AsioBlocking : public testing::Test {
 protected:
  AsioBlocking() { runtime::set_wait_floors(0, 0); }
  ~AsioBlocking() override {
    runtime::set_wait_floors(runtime::kDefaultBlockingFloorNs, runtime::kDefaultLockFloorNs);
  }
};

std::vector<Event> calls(const Trace& trace, const std::string& name) {
  std::vector<Event> found = trace.named("BlockingCallEvent");
  std::erase_if(found, [&](const Event& event) { return event.text("call") != name; });
  return found;
}

Trace record_handler(const std::function<void()>& handler) {
  return record([&] {
    net::io_context io;
    net::post(io, handler);
    io.run();
  });
}

// Until a thread waits for the locked mutex: glibc then marks it as contended.
void wait_for_contention(std::mutex& mutex) {
  while (__atomic_load_n(&mutex.native_handle()->__data.__lock, __ATOMIC_RELAXED) != 2) {
    std::this_thread::yield();
  }
}

TEST_F(AsioBlocking, ASleepInAHandlerIsABlockingCallOfItsTask) {
  runtime::set_wait_floors(runtime::kDefaultBlockingFloorNs, 0);
  const timespec two_ms{0, 2'000'000};
  const timespec nothing{0, 1'000};
  const Trace trace = record_handler([&] {
    nanosleep(&nothing, nullptr);  // below the floor, unless the machine is very busy
    nanosleep(&two_ms, nullptr);
  });
  const std::vector<Event> found = calls(trace, "nanosleep");
  ASSERT_GE(found.size(), 1u);
  const Event& call = found.back();
  const Poll poll = trace.polls().at(0);
  EXPECT_EQ(call.number("task_id"), poll.task);
  EXPECT_EQ(call.number("tid"), this_tid());
  EXPECT_GE(call.number("duration_ns"), 2'000'000u);
  EXPECT_GE(call.timestamp_ns, poll.start_ns);
  EXPECT_LE(call.timestamp_ns + call.number("duration_ns"), poll.end_ns);
}

TEST_F(AsioBlocking, AReadThatWaitsIsABlockingCall) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::promise<void> is_reading;
  std::thread writer([&] {
    is_reading.get_future().wait();
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  });
  const Trace trace = record_handler([&] {
    is_reading.set_value();
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
  });
  writer.join();
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(calls(trace, "read").size(), 1u);
}

TEST_F(AsioBlocking, AConditionWaitInAHandlerBlocksButIsNoPark) {
  std::mutex mutex;
  std::condition_variable condition;
  bool is_inside = false;
  bool may_go_on = false;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return is_inside; });
    may_go_on = true;
    condition.notify_all();
  });
  const Trace trace = record_handler([&] {
    std::unique_lock lock(mutex);
    is_inside = true;
    condition.notify_all();
    condition.wait(lock, [&] { return may_go_on; });
  });
  other.join();
  EXPECT_GE(calls(trace, "pthread_cond_wait").size(), 1u);
  for (const Event& park : trace.named("WorkerParkEvent")) {
    EXPECT_GT(park.timestamp_ns, trace.polls().at(0).end_ns);
  }
}

TEST_F(AsioBlocking, AContendedMutexInAHandlerNamesItsOwner) {
  std::mutex mutex;
  std::promise<void> is_locked;
  const std::uint32_t owner = this_tid();
  Trace trace;
  {
    Recording recording;
    net::io_context io;
    mutex.lock();
    net::post(io, [&] {
      mutex.lock();
      mutex.unlock();
    });
    std::thread worker([&] { io.run(); });
    wait_for_contention(mutex);
    mutex.unlock();
    worker.join();
    trace = recording.finish();
  }
  std::vector<Event> waits = trace.named("LockWaitEvent");
  std::erase_if(waits, [&](const Event& wait) {
    return wait.number("lock") != reinterpret_cast<std::uintptr_t>(mutex.native_handle());
  });
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].number("kind"), static_cast<std::uint64_t>(runtime::LockKind::kMutex));
  EXPECT_EQ(waits[0].number("owner_tid"), owner);
  EXPECT_EQ(waits[0].number("task_id"), trace.polls().at(0).task);
  EXPECT_NE(waits[0].number("tid"), owner);
}

[[gnu::noinline]] void lock_and_unlock(std::mutex& mutex) {
  mutex.lock();
  mutex.unlock();
  asm volatile("");  // no tail call
}

TEST_F(AsioBlocking, AContendedMutexHasTheStackOfWhoCalledForTheLock) {
  ASSERT_TRUE(add_lock_stacks());
  std::mutex mutex;
  Trace trace;
  {
    Recording recording;
    net::io_context io;
    mutex.lock();
    net::post(io, [&] { lock_and_unlock(mutex); });
    std::thread worker([&] { io.run(); });
    wait_for_contention(mutex);
    mutex.unlock();
    worker.join();
    trace = recording.finish();
  }
  EXPECT_TRUE(remove_lock_stacks());
  EXPECT_FALSE(remove_lock_stacks());
  std::vector<Event> waits = trace.named("LockWaitEvent");
  std::erase_if(waits, [&](const Event& wait) {
    return wait.number("lock") != reinterpret_cast<std::uintptr_t>(mutex.native_handle());
  });
  ASSERT_EQ(waits.size(), 1u);
  const std::vector<std::uint64_t> frames = waits[0].fields.at("callchain").frames;
  ASSERT_GE(frames.size(), 2u);
  const auto begin = reinterpret_cast<std::uintptr_t>(&lock_and_unlock);
  const auto is_there = [&](std::uint64_t pc) { return pc > begin && pc < begin + 400; };
  // Unoptimised code has the calls inside std::mutex::lock() before it.
  EXPECT_TRUE(std::any_of(
      frames.begin(),
      frames.begin() + std::min<std::ptrdiff_t>(4, static_cast<std::ptrdiff_t>(frames.size())),
      is_there));
}

TEST_F(AsioBlocking, AFreeMutexIsNotTimed) {
  std::recursive_mutex recursive;
  std::mutex plain;
  const Trace trace = record_handler([&] {
    const std::lock_guard outer(recursive);
    const std::lock_guard inner(recursive);
    const std::lock_guard lock(plain);
  });
  for (const Event& wait : trace.named("LockWaitEvent")) {
    EXPECT_NE(wait.number("lock"), reinterpret_cast<std::uintptr_t>(plain.native_handle()));
    EXPECT_NE(wait.number("lock"), reinterpret_cast<std::uintptr_t>(recursive.native_handle()));
  }
}

TEST_F(AsioBlocking, ARobustMutexOfADeadOwnerIsHandedOver) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  pthread_mutex_init(&mutex, &attributes);
  std::thread([&] { pthread_mutex_lock(&mutex); }).join();
  int result = 0;
  record_handler([&] { result = pthread_mutex_lock(&mutex); });
  EXPECT_EQ(result, EOWNERDEAD);
  EXPECT_EQ(pthread_mutex_consistent(&mutex), 0);
  EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
  pthread_mutex_destroy(&mutex);
  pthread_mutexattr_destroy(&attributes);
}

TEST_F(AsioBlocking, AMutexThatTheHandlerHoldsAnswersByItsKind) {
  pthread_mutexattr_t kind;
  ASSERT_EQ(pthread_mutexattr_init(&kind), 0);
  pthread_mutex_t checking;
  pthread_mutex_t recursive;
  ASSERT_EQ(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK), 0);
  ASSERT_EQ(pthread_mutex_init(&checking, &kind), 0);
  ASSERT_EQ(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE), 0);
  ASSERT_EQ(pthread_mutex_init(&recursive, &kind), 0);
  record_handler([&] {
    EXPECT_EQ(pthread_mutex_lock(&checking), 0);
    EXPECT_EQ(pthread_mutex_lock(&checking), EDEADLK);
    EXPECT_EQ(pthread_mutex_unlock(&checking), 0);
    EXPECT_EQ(pthread_mutex_unlock(&checking), EPERM) << "it was taken once";
    EXPECT_EQ(pthread_mutex_lock(&recursive), 0);
    EXPECT_EQ(pthread_mutex_lock(&recursive), 0);
    EXPECT_EQ(pthread_mutex_unlock(&recursive), 0);
    EXPECT_EQ(pthread_mutex_unlock(&recursive), 0);
  });
  pthread_mutex_destroy(&checking);
  pthread_mutex_destroy(&recursive);
  pthread_mutexattr_destroy(&kind);
}

TEST_F(AsioBlocking, AFailedCallKeepsItsErrno) {
  int seen = 0;
  record_handler([&] {
    char byte;
    errno = 0;
    EXPECT_EQ(read(-1, &byte, 1), -1);
    seen = errno;
  });
  EXPECT_EQ(seen, EBADF);
}

TEST_F(AsioBlocking, NothingOutsideAPollIsABlockingCall) {
  const timespec nothing{0, 1'000};
  const Trace trace = record([&] {
    nanosleep(&nothing, nullptr);
    net::io_context io;
    io.run();
    nanosleep(&nothing, nullptr);
  });
  EXPECT_TRUE(trace.named("BlockingCallEvent").empty());
}

TEST_F(AsioBlocking, AskingWithoutWaitingIsNoPark) {
  const Trace trace = record([&] {
    net::io_context io;
    net::post(io, [] {});
    io.poll();
    io.restart();
    net::post(io, [] {});
    io.poll();
  });
  EXPECT_EQ(trace.polls().size(), 2u);
  EXPECT_TRUE(trace.named("WorkerParkEvent").empty());
}

TEST_F(AsioBlocking, AWorkerIsCancelledInItsPark) {
  Recording recording;
  const runtime::RuntimeId id = runtime::register_runtime("cancelled");
  struct Shared {
    runtime::RuntimeId id;
    int epoll;
    std::promise<runtime::WorkerId> worker;
  } shared{id, epoll_create1(EPOLL_CLOEXEC), {}};
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    Shared& mine = *static_cast<Shared*>(argument);
    mine.worker.set_value(runtime::enter_worker(mine.id));
    epoll_event event;
    epoll_wait(mine.epoll, &event, 1, -1);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, &shared), 0);
  const runtime::WorkerId worker = shared.worker.get_future().get();
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  close(shared.epoll);
  Trace trace = recording.finish();
  std::erase_if(trace.events,
                [&](const Event& event) { return event.number("worker_id") != worker; });
  EXPECT_EQ(trace.named("WorkerParkEvent").size(), trace.named("WorkerUnparkEvent").size());
}

TEST_F(AsioBlocking, TheChildOfAForkRunsOnWithoutRecording) {
  Recording recording;
  net::io_context io;
  int status = 0;
  net::post(io, [&] {
    const pid_t child = fork();
    if (child == 0) {
      const timespec nothing{0, 1'000};
      nanosleep(&nothing, nullptr);
      std::mutex mutex;
      mutex.lock();
      _exit(is_recording() ? 1 : 7);
    }
    waitpid(child, &status, 0);
  });
  io.run();
  EXPECT_EQ(WEXITSTATUS(status), 7);
  const Trace trace = recording.finish();
  EXPECT_TRUE(calls(trace, "nanosleep").empty());
  EXPECT_EQ(calls(trace, "waitpid").size(), 1u);
}

}  // namespace
}  // namespace dial9::test
