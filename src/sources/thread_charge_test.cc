// The CPU clocks of real threads, asked from outside: they stand still while a thread is blocked,
// are nobody else's, and a filter that refuses them costs looks nothing but time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "recorder/test_support.h"
#include "sources/testing/blocked_worker.h"
#include "sources/testing/in_child.h"
#include "sources/thread_probe.h"
#include "sources/wall_sampler.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

using namespace testing;

class ThreadCharge : public OffCpuTest {
 protected:
  // A child's that lives. A parent may be outside of this process's namespace, and without an id.
  std::optional<std::uint64_t> charged_of_another_process() {
    const Pipe pipe;
    const pid_t child = ::fork();
    if (child == 0) {
      char byte;
      ::_exit(::read(pipe.out.get(), &byte, 1) == 1 ? 0 : 1);
    }
    const auto charged_ns = probe->charged_ns(static_cast<std::uint32_t>(child));
    EXPECT_EQ(::write(pipe.in.get(), "x", 1), 1);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    return charged_ns;
  }
};

TEST_F(ThreadCharge, StandsStillWhileAThreadIsBlockedAndMovesWhenItRan) {
  Pipe pipes[2];
  const Worker worker([&] {
    for (const Pipe& pipe : pipes) wait_for_byte(pipe.out.get());
  });
  look(worker.tid(), "read");
  const auto first = probe->charged_ns(worker.tid());
  const auto account = probe->account(worker.tid());
  ASSERT_TRUE(first);
  ASSERT_TRUE(account);
  EXPECT_EQ(*first, account->run_ns) << "it is what the account says of a thread that doesn't run";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(probe->charged_ns(worker.tid()), first);
  pipes[0].release();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(pipes[1].out.get())) {
  }
  EXPECT_GT(probe->charged_ns(worker.tid()).value_or(0), *first);
  EXPECT_GT(probe->account(worker.tid())->slices, account->slices);
  pipes[1].release();
}

TEST_F(ThreadCharge, MovesWhileAThreadRuns) {
  std::atomic<bool> is_over{false};
  const Worker worker([&] {
    while (!is_over) {
    }
  });
  const std::uint64_t first = probe->charged_ns(worker.tid()).value_or(0);
  while (probe->charged_ns(worker.tid()).value_or(0) <= first) std::this_thread::yield();
  is_over = true;
}

TEST_F(ThreadCharge, AThreadThatEndedOrIsAnotherProcesssHasNoneAndThatIsNoTrouble) {
  std::uint32_t tid = 0;
  {
    const Worker worker([] {});
    tid = worker.tid();
  }
  while (probe->charged_ns(tid)) std::this_thread::yield();  // joined, not yet gone
  EXPECT_FALSE(charged_of_another_process());
  EXPECT_FALSE(probe->charged_ns(0)) << "by which the kernel understands whoever asks";
  EXPECT_EQ(probe->trouble(), "");
  EXPECT_TRUE(probe->charged_ns(static_cast<std::uint32_t>(::syscall(SYS_gettid))));
}

TEST_F(ThreadCharge, TheChildOfAForkDoesNotTakeItsParentsThreadsForItsOwn) {
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  look(worker.tid(), "read");
  EXPECT_EQ(in_child([&] { return probe->charged_ns(worker.tid()) ? 1 : 0; }), 0);
  pipe.release();
}

TEST_F(ThreadCharge, ThreadsAreCountedAsTheyAreListed) {
  Pipe pipe;
  for (int threads = 0; threads < 5; ++threads) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < threads; ++i) {
      workers.push_back(std::make_unique<Worker>([&] { wait_for_byte(pipe.out.get()); }));
      look(workers.back()->tid(), "read");
    }
    std::vector<std::uint32_t> tids;
    std::optional<std::uint64_t> count;
    do {  // those of the round before go by and by
      count = probe->count();
      ASSERT_TRUE(count);
      ASSERT_TRUE(probe->list(&tids));
    } while (tids.size() + 1 != *count);
    for (const auto& worker : workers) EXPECT_EQ(std::ranges::count(tids, worker->tid()), 1);
    for (int i = 0; i < threads; ++i) pipe.release();
  }
}

// Whoever finds out first, the next who asks hears it too, until the thread is forgotten.
TEST_F(ThreadCharge, ThatAThreadEndedIsHeardByWhoeverAsksForItsAccountUntilItIsForgotten) {
  Pipe pipe;
  std::uint32_t tid = 0;
  BlockedThread blocked;
  {
    const Worker worker([&] { wait_for_byte(pipe.out.get()); });
    tid = worker.tid();
    blocked = look(tid, "read");
    pipe.release();
  }
  while (probe->charged_ns(tid)) std::this_thread::yield();  // joined, not yet gone
  blocked.socket = 1;
  EXPECT_FALSE(probe->socket_health(tid, {}, blocked)) << "asks for its account, too";
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(probe->account(tid));
    EXPECT_TRUE(probe->has_ended());
  }
  const std::uint32_t kept = kept_files();
  probe->forget(tid);
  EXPECT_EQ(kept_files(), kept - 1);
  EXPECT_FALSE(probe->account(tid));
  EXPECT_FALSE(probe->has_ended()) << "nothing is known of who has the id now";
}

// A kept file is the first thread's, whoever has its id.
TEST_F(ThreadCharge, AThreadIdThatIsUsedAgainIsReadAnew) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    probe = make_thread_probe();
    Pipe pipe;
    std::uint32_t tid = 0;
    {
      const Worker first([&] { wait_for_byte(pipe.out.get()); });
      tid = first.tid();
      look(tid, "read");
      pipe.release();
    }
    while (probe->charged_ns(tid)) std::this_thread::yield();  // joined, not yet gone
    // The next thread of whoever starts one has the id behind it.
    if (!(std::ofstream("/proc/sys/kernel/ns_last_pid") << tid - 1 << std::flush)) {
      GTEST_SKIP() << "ids can't be chosen here";
    }
    const Worker second([&] { wait_for_byte(pipe.out.get()); });
    if (second.tid() != tid) {
      pipe.release();
      continue;
    }
    BlockedThread blocked;
    EXPECT_NE(probe->look(tid, {}, &blocked), Look::kBlocked) << "it isn't the first one";
    EXPECT_FALSE(probe->account(tid)) << "the first one's, who ended";
    EXPECT_TRUE(probe->has_ended());
    probe->forget(tid);
    const bool is_read = probe->account(tid).has_value();
    EXPECT_FALSE(probe->has_ended());
    EXPECT_TRUE(is_read);
    if (is_read) {
      look(tid, "read");
      EXPECT_EQ(probe->account(tid)->run_ns, probe->charged_ns(tid));
    }
    pipe.release();
    return;
  }
  GTEST_SKIP() << "others took the id each time";
}

// The probe of the system, in a time that the test moves; counts what it is asked.
class CountingProbe final : public ThreadProbe {
 public:
  explicit CountingProbe(ThreadProbe& probe) : probe_(probe) {}
  std::uint64_t now = 1'000 * kTestMs;
  std::uint32_t only = 0;
  std::uint64_t accounts = 0;
  std::uint64_t clocks = 0;

  std::uint64_t now_ns() override { return now; }
  std::uint64_t cpu_ns() override { return 0; }
  bool list(std::vector<std::uint32_t>* tids) override {
    *tids = {only};
    return true;
  }
  std::optional<SchedReading> account(std::uint32_t tid) override {
    ++accounts;
    return probe_.account(tid);
  }
  bool has_ended() const override { return probe_.has_ended(); }
  std::optional<std::uint64_t> charged_ns(std::uint32_t tid) override {
    ++clocks;
    return probe_.charged_ns(tid);
  }
  Look look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) override {
    const Look look = probe_.look(tid, reading, thread);
    thread->at_ns = now;
    return look;
  }
  std::string name(std::uint32_t tid) override { return probe_.name(tid); }
  void forget(std::uint32_t tid) override { probe_.forget(tid); }
  std::string trouble() const override { return probe_.trouble(); }

 private:
  ThreadProbe& probe_;
};

struct Rested {
  std::uint64_t looks = 0;
  std::uint64_t accounts = 0;
  std::uint64_t clocks = 0;
  bool is_whole = false;  // all of it is one proven wait
};

// A minute and more of looks at a thread that is blocked in a call.
Rested rest(ThreadProbe& system, std::uint32_t tid) {
  OffCpuEncoder encoder;
  CountingProbe probe(system);
  probe.only = tid;
  WallSampler sampler(probe, encoder, 100);
  const std::uint64_t begin = probe.now;
  while (probe.now < begin + 100'000 * kTestMs) {
    probe.now = std::max(probe.now, sampler.due_ns());
    sampler.step(probe.now);
  }
  Rested rested{sampler.totals().looks, probe.accounts, probe.clocks};
  sampler.finish();
  std::vector<std::uint8_t> bytes;
  for (const SourceStream& stream : encoder.take()) {
    bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
  }
  const Trace trace = Trace::of(bytes);
  std::uint64_t proven = 0;
  for (const std::uint64_t ns : trace.numbers("OffCpuEvent", "duration_ns")) proven += ns;
  rested.is_whole = proven == probe.now - begin && trace.texts("OffCpuEvent", "call")[0] == "read";
  return rested;
}

TEST_F(ThreadCharge, ARealThreadThatRestsIsProvenToRestWithFewReadsOfItsAccount) {
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  look(worker.tid(), "read");
  const Rested rested = rest(*probe, worker.tid());
  EXPECT_TRUE(rested.is_whole);
  EXPECT_LT(rested.accounts, rested.looks / 3);
  EXPECT_GT(rested.clocks, rested.looks / 2);
  pipe.release();
}

// In a child, whose filter goes with it.
int rest_without_clocks(int error) {
  if (!deny_call(SYS_clock_gettime, error)) return 77;  // where the C library can't do without
  unwind::prepare();
  Pipe pipe;
  const Worker worker([&] { wait_for_byte(pipe.out.get()); });
  const auto probe = make_thread_probe();
  BlockedThread thread;
  for (;;) {
    const auto reading = probe->account(worker.tid());
    if (reading && probe->look(worker.tid(), *reading, &thread) == Look::kBlocked &&
        thread.call == "read") {
      break;
    }
    std::this_thread::yield();
  }
  const Rested rested = rest(*probe, worker.tid());
  const bool is_told = probe->trouble().starts_with("cannot read 'the CPU clock of a thread': " +
                                                    std::system_category().message(error));
  pipe.release();
  if (!rested.is_whole) return 1;
  if (rested.accounts < rested.looks) return 2;
  return is_told ? 0 : 3;
}

TEST_F(ThreadCharge, WhereAFilterRefusesClocksEachLookReadsTheAccountAndTheReasonIsTold) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  for (const int error : {EPERM, ENOSYS, EINVAL}) {
    const int code = in_child([error] { return rest_without_clocks(error); });
    if (code == 77) GTEST_SKIP() << "no filter can be set here";
    EXPECT_EQ(code, 0) << error;
  }
}

}  // namespace
}  // namespace dial9::internal
