// Threads that really block, looked at from outside: the call, the stack, the context and the time
// come back. No test waits for wall time: threads block on what the test holds, and the time that
// passes is injected.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "base/unique_fd.h"
#include "dial9/label.h"
#include "dial9/off_cpu.h"
#include "dial9/runtime.h"
#include "dial9/span.h"
#include "recorder/fork_fds.h"
#include "recorder/recording_state.h"
#include "recorder/test_support.h"
#include "sources/own_memory.h"
#include "sources/testing/blocked_worker.h"
#include "sources/thread_probe.h"
#include "sources/wall_sampler.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

using namespace testing;

class OffCpu : public OffCpuTest {};

DIAL9_SPAN(Fetching, "fetching", DIAL9_FIELDS((std::uint64_t, number)));

TEST_F(OffCpu, AThreadThatReadsAPipeShowsTheCallTheDescriptorAndItsWholeStack) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan's frames are larger, and a copy of them lacks what it takes to leave them";
#endif
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  const BlockedThread thread = look(worker.tid(), "read");
  pipe.release();
  EXPECT_EQ(thread.cause, "pipe");
  EXPECT_EQ(thread.fd, static_cast<std::uint64_t>(pipe.out.get()));
  EXPECT_FALSE(thread.is_truncated);
  ASSERT_NE(frame_of(thread.frames, read_one), npos);
  EXPECT_EQ(frame_of(thread.frames, wait_for_byte), frame_of(thread.frames, read_one) + 1);
  EXPECT_TRUE(worker.is_outermost(thread.frames));
}

TEST_F(OffCpu, AThreadThatReceivesShowsThePeersAddress) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, bytes), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &bytes), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), generic, bytes), 0);
  const UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const Worker worker([&] {
    char byte = 0;
    EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 1);
  });
  const BlockedThread thread = look(worker.tid(), "recv");
  EXPECT_EQ(::send(server.get(), "x", 1, 0), 1);
  EXPECT_EQ(thread.cause, "socket");
  EXPECT_EQ(thread.fd, static_cast<std::uint64_t>(client.get()));
  EXPECT_EQ(thread.peer, "127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(worker.is_outermost(thread.frames));
}

TEST_F(OffCpu, AThreadThatWaitsForALockShowsTheLock) {
  std::mutex mutex;
  mutex.lock();
  const Worker worker([&] { const std::lock_guard guard(mutex); });
  const BlockedThread thread = look(worker.tid(), "futex");
  mutex.unlock();
  EXPECT_EQ(thread.cause, "lock");
  EXPECT_EQ(thread.object, reinterpret_cast<std::uintptr_t>(mutex.native_handle()));
  EXPECT_FALSE(thread.fd);
  EXPECT_TRUE(worker.is_outermost(thread.frames));
}

// A waiter that is notified moves from the condition to the lock by itself: looks until it has.
std::string look_for_cause(ThreadProbe& probe, std::uint32_t tid, std::string_view cause) {
  BlockedThread thread;
  do {
    const auto reading = probe.account(tid);
    if (!reading || probe.look(tid, *reading, &thread) != Look::kBlocked) thread.cause = {};
  } while (thread.cause != cause);
  return std::string(thread.cause);
}

// The kernel calls all of them a futex.
TEST_F(OffCpu, ALockAConditionAndAnotherFutexAreToldApart) {
  std::shared_mutex lock;
  lock.lock();
  std::mutex mutex;
  std::condition_variable condition;
  bool is_released = false;
  std::atomic<int> word{0};
  {
    const Worker reader([&] { const std::shared_lock guard(lock); });
    const Worker waiter([&] {
      std::unique_lock guard(mutex);
      condition.wait(guard, [&] { return is_released; });
    });
    const Worker other([&] { word.wait(0); });
    EXPECT_EQ(look(reader.tid(), "futex").cause, "lock");
    EXPECT_EQ(look(waiter.tid(), "futex").cause, "condition");
    EXPECT_EQ(look(other.tid(), "futex").cause, "futex");
    lock.unlock();
    {
      const std::lock_guard guard(mutex);
      is_released = true;
      condition.notify_one();
      EXPECT_EQ(look_for_cause(*probe, waiter.tid(), "lock"), "lock") << "it takes its mutex again";
    }
    word = 1;
    word.notify_one();
  }
}

TEST_F(OffCpu, ASleepingThreadWaitsForATimer) {
  Pipe pipe;
  const Worker worker([&] {
    const timespec hour{3'600, 0};
    ::nanosleep(&hour, nullptr);  // until it is cancelled by the signal below
  });
  const BlockedThread thread = look(worker.tid(), "clock_nanosleep");
  EXPECT_EQ(thread.cause, "timer");
  struct sigaction action{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, nullptr);
  ::kill(::getpid(), 0);
  ::syscall(SYS_tgkill, ::getpid(), worker.tid(), SIGUSR1);
}

TEST_F(OffCpu, TaskSpanAndLabelOfABlockedThreadAreItsOwn) {
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status);
  Pipe in_task;
  Pipe outside;
  std::atomic<std::uint64_t> task_span{0};
  std::atomic<std::uint64_t> thread_span{0};
  const auto runtime = runtime::register_runtime("off-cpu");
  static runtime::Place place{"off_cpu_test"};
  const Worker one([&] {
    const runtime::PollScope poll(runtime, {4711, &place});
    const span<Fetching> fetching({1});
    task_span = fetching.as_parent().id;
    const label tenant("tenant", "acme");
    wait_for_byte(in_task.out.get());
  });
  const Worker two([&] {
    const span<Fetching> fetching({2});
    thread_span = fetching.as_parent().id;
    const label tenant("tenant", "other");
    wait_for_byte(outside.out.get());
  });
  const BlockedThread first = look(one.tid(), "read");
  const BlockedThread second = look(two.tid(), "read");
  in_task.release();
  outside.release();
  EXPECT_EQ(first.context.sample.task, 4711U);
  EXPECT_EQ(first.context.sample.label.value(), "acme");
  EXPECT_EQ(second.context.sample.task, 0U);
  EXPECT_EQ(second.context.sample.label.value(), "other");
  EXPECT_NE(task_span.load(), 0U);
  EXPECT_EQ(first.context.sample.span, task_span.load());
  EXPECT_EQ(second.context.sample.span, thread_span.load());
}

// The probe of the system, in a time that the test moves.
class TimedProbe final : public ThreadProbe {
 public:
  explicit TimedProbe(ThreadProbe& probe) : probe_(probe) {}
  std::uint64_t now = 1'000 * kTestMs;
  std::vector<std::uint32_t> only;
  std::uint64_t now_ns() override { return now; }
  std::uint64_t cpu_ns() override { return 0; }
  bool list(std::vector<std::uint32_t>* tids) override {
    *tids = only;
    return true;
  }
  std::optional<SchedReading> account(std::uint32_t tid) override { return probe_.account(tid); }
  Look look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) override {
    return probe_.look(tid, reading, thread);
  }
  std::string name(std::uint32_t tid) override { return probe_.name(tid); }
  void forget(std::uint32_t tid) override { probe_.forget(tid); }
  std::string trouble() const override { return probe_.trouble(); }

 private:
  ThreadProbe& probe_;
};

Trace trace_of(OffCpuEncoder& encoder) {
  std::vector<std::uint8_t> bytes;
  for (const SourceStream& stream : encoder.take()) {
    bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
  }
  return Trace::of(bytes);
}

TEST_F(OffCpu, KnownWaitsComeBackWithTheirTimesAndNothingElse) {
  Pipe pipes[3];
  OffCpuEncoder encoder;
  TimedProbe timed(*probe);
  WallSampler sampler(timed, encoder, 100);
  Pipe done;
  const Worker worker([&] {
    for (const Pipe& pipe : pipes) wait_for_byte(pipe.out.get());
    wait_for_byte(done.out.get());
  });
  timed.only = {worker.tid()};
  constexpr int kLooks[3] = {3, 40, 2};
  std::uint64_t looked_ns[3] = {};  // from the first look at the wait to the last
  for (int i = 0; i < 3; ++i) {
    while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(pipes[i].out.get())) {
    }
    std::uint64_t first = 0;
    for (int n = 0; n < kLooks[i]; ++n) {
      timed.now = std::max(timed.now, sampler.due_ns());
      sampler.step(timed.now);
      first = n == 0 ? timed.now : first;
    }
    looked_ns[i] = timed.now - first;
    pipes[i].release();
  }
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(done.out.get())) {
  }
  timed.now = std::max(timed.now, sampler.due_ns());
  sampler.step(timed.now);
  sampler.finish();
  done.release();
  const Trace trace = trace_of(encoder);
  const auto fds = trace.numbers("OffCpuEvent", "fd");
  const auto seen = trace.numbers("OffCpuEvent", "duration_ns");
  for (int i = 0; i < 3; ++i) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < fds.size(); ++at) {
      sum += fds[at] == static_cast<std::uint64_t>(pipes[i].out.get()) ? seen[at] : 0;
    }
    EXPECT_EQ(sum, looked_ns[i]);
  }
  std::uint64_t all = 0;
  for (const std::uint64_t ns : trace.numbers("ThreadTimesEvent", "elapsed_ns")) all += ns;
  EXPECT_EQ(all, timed.now - 1'000 * kTestMs);
}

TEST_F(OffCpu, ALookLeavesTheThreadAsleep) {
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  look(worker.tid(), "read");
  const auto before = probe->account(worker.tid());
  for (int i = 0; i < 200; ++i) look(worker.tid(), "read");
  const auto after = probe->account(worker.tid());
  pipe.release();
  EXPECT_EQ(after->slices, before->slices);
  EXPECT_EQ(after->run_ns, before->run_ns);
}

TEST_F(OffCpu, KeepsAHandfulOfDescriptorsAndFewUnderALowLimit) {
  EXPECT_EQ(kept_file_room(1'024), 32U);
  EXPECT_EQ(kept_file_room(64), 2U);
  EXPECT_EQ(kept_file_room(1'000'000), kMostKeptFiles);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  probe.reset();
  EXPECT_EQ(kept_files(), 0U);
  const rlimit low{128, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  probe = make_thread_probe();
  Pipe pipe;
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < 20; ++i) {
      workers.push_back(std::make_unique<Worker>([&] { wait_for_byte(pipe.out.get()); }));
    }
    for (const auto& worker : workers) look(worker->tid(), "read");
    EXPECT_LE(kept_files(), 5U);
    for (int i = 0; i < 20; ++i) pipe.release();
  }
  probe.reset();
  EXPECT_EQ(kept_files(), 0U);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

// In a child: what it needs is asked of its own process. Returns the exit code.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// Descriptors of the calling process that lead below the directory of `pid`'s threads.
std::vector<int> descriptors_of_threads_of(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.starts_with(tasks)) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

TEST_F(OffCpu, WhereTheHostTookADescriptorItsOwnIsLeftAloneAndLooksGoOn) {
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  look(worker.tid(), "read");
  const std::vector<int> numbers = descriptors_of_threads_of(::getpid());
  EXPECT_GE(numbers.size(), 2U);
  std::vector<UniqueFd> taken;
  for (const int number : numbers) {
    ASSERT_EQ(::dup3(pipe.out.get(), number, O_CLOEXEC), number);
    taken.emplace_back(number);
  }
  look(worker.tid(), "read");
  EXPECT_EQ(descriptors_of_threads_of(::getpid()).size(), numbers.size()) << "opened again";
  probe.reset();
  for (const UniqueFd& fd : taken) EXPECT_TRUE(leads_to(fd.get(), identity_of(pipe.out.get())));
  pipe.release();
}

TEST_F(OffCpu, TheChildOfAForkHasNoneOfItsParentsDescriptors) {
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  look(worker.tid(), "read");
  EXPECT_GE(kept_files(), 2U);
  const pid_t parent = ::getpid();
  EXPECT_EQ(in_child([parent] {
              return static_cast<int>(kept_files() + descriptors_of_threads_of(parent).size());
            }),
            0);
  pipe.release();
}

// A process that became nobody, as one that was started so (its memory is its own).
int look_as_nobody(bool is_dumpable) {
  if (::setresgid(65'534, 65'534, 65'534) != 0 || ::setresuid(65'534, 65'534, 65'534) != 0) {
    return 77;
  }
  ::prctl(PR_SET_DUMPABLE, is_dumpable ? 1 : 0);
  unwind::prepare();
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  const auto probe = make_thread_probe();
  BlockedThread thread;
  int code = 0;
  for (;;) {
    const auto reading = probe->account(worker.tid());
    const Look look = reading ? probe->look(worker.tid(), *reading, &thread) : Look::kMoved;
    if (look == Look::kBlocked && thread.call == "read") {
      code = worker.is_outermost(thread.frames) ? 0 : 1;
      break;
    }
    if (look == Look::kUnreadable) {
      code = probe->trouble().find("Permission denied") != std::string::npos && reading ? 2 : 3;
      break;
    }
    std::this_thread::yield();
  }
  pipe.release();
  return code;
}

TEST_F(OffCpu, NobodyWithoutCapabilitiesSeesWholeStacksToo) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan's frames are larger, and a copy of them lacks what it takes to leave them";
#endif
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  if (::getuid() != 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EQ(in_child([] { return look_as_nobody(true); }), 0);
}

TEST_F(OffCpu, WhereCallsCantBeReadTimesAreAndTheReasonIsTold) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  if (::getuid() != 0) GTEST_SKIP() << "only root can become a nobody that isn't dumpable";
  EXPECT_EQ(in_child([] { return look_as_nobody(false); }), 2);
}

TEST_F(OffCpu, WithoutProcessVmReadvMemoryIsCopiedThroughTheFile) {
  OwnMemory memory;
  memory.deny_direct();
  const char text[] = "forty-two";
  char copy[sizeof text] = {};
  EXPECT_EQ(memory.copy(reinterpret_cast<std::uintptr_t>(text), copy, sizeof copy), sizeof copy);
  EXPECT_STREQ(copy, text);
  EXPECT_EQ(memory.copy(4'096, copy, sizeof copy), 0U);
  EXPECT_NE(memory.error(), 0);
}

TEST(OffCpuSource, RecordsWhileARecorderRunsAndSaysSoInTheMetadata) {
  EXPECT_FALSE(add_off_cpu_samples({.frequency_hz = 5}));
  ASSERT_TRUE(add_off_cpu_samples({.frequency_hz = 100}));
  EXPECT_FALSE(add_off_cpu_samples());
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status);
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  while (off_cpu_status().stacks == 0 && off_cpu_status().message.empty()) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(remove_off_cpu_samples());
  EXPECT_FALSE(remove_off_cpu_samples());
  while (kept_files() != 0) std::this_thread::yield();
  EXPECT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  const Trace trace = Trace::of(recorder.sealed_segments());
  pipe.release();
  EXPECT_GT(trace.count("ThreadTimesEvent"), 0U);
  EXPECT_EQ(trace.metadata("off_cpu.frequency_hz"), "100");
  EXPECT_GT(trace.count("ModuleEvent"), 0U) << "no reader could name the stacks";
  const StopResult result = recorder.stop(std::chrono::seconds(30));
  EXPECT_EQ(kept_files(), 0U);
  const auto own =
      std::find_if(result.sources.begin(), result.sources.end(),
                   [](const SourceStatus& source) { return source.name == "off_cpu_samples"; });
  ASSERT_NE(own, result.sources.end()) << "the exit report names it";
  EXPECT_GE(own->events, trace.count("ThreadTimesEvent"));
}

}  // namespace
}  // namespace dial9::internal
