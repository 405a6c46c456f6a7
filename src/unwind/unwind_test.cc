// The public functions: what they keep, what they bound, and that no register set makes them fault.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind.h"

#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <random>
#include <thread>
#include <type_traits>

#include "unwind/process_memory.h"
#include "unwind/testing/async_reference.h"
#include "unwind/testing/context.h"
#include "unwind/thread_stack.h"

namespace dial9::unwind {
namespace {

using Frames = std::array<std::uint64_t, 128>;

std::uint64_t address_of(const void* pointer) { return std::bit_cast<std::uint64_t>(pointer); }

[[gnu::noinline]] Result walk_from_here(Frames& frames, const Options& options) {
  const Result result = unwind_here(frames, options);
  asm volatile("");
  return result;
}

bool is_within(std::uint64_t pc, const void* function) {
  return pc > address_of(function) && pc < address_of(function) + 1024;
}

TEST(UnwindHere, BeginsInItsCaller) {
  prepare();
  Frames frames{};
  const Result result = walk_from_here(frames, {});
  EXPECT_EQ(result.stop, StopReason::kEndOfStack);
  EXPECT_GT(result.count, 3u);
  EXPECT_TRUE(is_within(frames[0], std::bit_cast<void*>(&walk_from_here)));
}

TEST(UnwindHere, SkipsWrappersOnRequest) {
  prepare();
  Frames all{};
  Frames fewer{};
  const Result whole = walk_from_here(all, {});
  const Result result = walk_from_here(fewer, {.skip = 2});
  ASSERT_EQ(result.count + 2, whole.count);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.begin() + result.count - 1, all.begin() + 3 - 1));
}

TEST(UnwindHere, IsTheSameWhenTheKernelCopies) {
  prepare();
  Frames direct{};
  Frames copied{};
  Frames probed{};
  std::array<Result, 3> results;
  for (int round = 0; round < 3; ++round) {
    ProcessMemory::deny_kernel_copies(round == 2);
    results[static_cast<std::size_t>(round)] = walk_from_here(round == 0   ? direct
                                                              : round == 1 ? copied
                                                                           : probed,
                                                              {.distrust_stack = round != 0});
  }
  ProcessMemory::deny_kernel_copies(false);
  EXPECT_EQ(results[0].stop, StopReason::kEndOfStack);
  EXPECT_EQ(results[1].stop, StopReason::kEndOfStack);
  EXPECT_EQ(results[2].stop, StopReason::kEndOfStack);
  direct[1] = copied[1] = probed[1] = 0;  // in this function: the compiler may unroll the loop
  EXPECT_EQ(direct, copied);
  EXPECT_EQ(direct, probed);
}

TEST(UnwindHere, KeepsErrno) {
  errno = EDOM;
  Frames frames{};
  walk_from_here(frames, {.distrust_stack = true});
  EXPECT_EQ(errno, EDOM);
}

// One thread is held inside by the loader's lock, which the other has.
TEST(Prepare, SaysThatAnotherThreadIsAtItAndNotThatMemoryIsShort) {
  ASSERT_EQ(prepare(), Prepared::kDone);
  std::thread other;
  const auto inside = [](dl_phdr_info*, std::size_t, void* data) {
    *static_cast<std::thread*>(data) = std::thread([] {
      while (prepare() != Prepared::kDone) std::this_thread::yield();
    });
    // Alone in there it would be done: the other has to come in first.
    Prepared mine = prepare();
    for (; mine == Prepared::kDone; mine = prepare()) std::this_thread::yield();
    EXPECT_EQ(mine, Prepared::kBusy);
    return 1;
  };
  ::dl_iterate_phdr(inside, &other);
  other.join();
}

TEST(UnwindHere, WorksInAForkChild) {
  prepare();
  const pid_t child = fork();
  if (child == 0) {
    Frames frames{};
    const Result result = walk_from_here(frames, {.distrust_stack = true});
    _exit(prepare() == Prepared::kDone && !result.truncated() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(UnwindCopy, OfAStackIsWhatTheStackWas) {
  prepare();
  static Frames live;
  static Frames copied;
  static Result results[2];
  std::thread([] {
    ucontext_t context;
    getcontext(&context);
    const auto sp = static_cast<std::uint64_t>(testing::sp_of(context));
    std::vector<std::byte> bytes(own_stack(sp).high - sp);
    ASSERT_EQ(ProcessMemory().copy(sp, bytes.data(), bytes.size()), bytes.size());
    results[0] = unwind(&context, live);
    results[1] = unwind_copy({.pc = static_cast<std::uint64_t>(testing::pc_of(context)),
                              .sp = sp,
                              .fp = static_cast<std::uint64_t>(testing::fp_of(context)),
                              .address = sp,
                              .bytes = bytes},
                             copied);
  }).join();
  EXPECT_EQ(results[0].stop, StopReason::kEndOfStack);
  EXPECT_EQ(results[1].stop, StopReason::kEndOfStack);
  EXPECT_EQ(results[0].count, results[1].count);
  EXPECT_EQ(live, copied);
}

TEST(UnwindCopy, ThatIsTooShortIsTruncated) {
  prepare();
  Frames frames{};
  const std::uint64_t pc = address_of(std::bit_cast<void*>(&walk_from_here));
  const Result result = unwind_copy({.pc = pc, .sp = 4096, .address = 4096, .bytes = {}}, frames);
  EXPECT_EQ(result.count, 1u);
  // At a function's first instruction: of a register that a copy doesn't have, or of the stack.
  EXPECT_EQ(result.stop, testing::kCallsPush ? StopReason::kUnreadable
                                             : StopReason::kUnsupportedRule);
}

// Registers as no program has them: each walk ends, none faults.
TEST(Unwind, NoRegisterSetMakesItFaultOrHang) {
  prepare();
  std::mt19937_64 random(99);
  const auto here = address_of(__builtin_frame_address(0));
  const auto libc = address_of(std::bit_cast<void*>(&std::qsort)) & ~std::uint64_t{0xfffff};
  const auto ours = address_of(std::bit_cast<void*>(&walk_from_here));
  void* const guard = mmap(nullptr, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<char*>(guard) + 4096, 4096, PROT_READ | PROT_WRITE);
  const std::array<std::uint64_t, 8> special{
      0, 8, ~0ul, ~7ul, 1ul << 63, address_of(guard) + 8184, address_of(guard) + 4096, here};
  const auto address = [&]() -> std::uint64_t {
    switch (random() % 5) {
      case 0:
        return random();
      case 1:
        return special[random() % special.size()];
      case 2:
        return here - 8192 + random() % 16384;
      case 3:
        return (here + random() % 8192) & ~std::uint64_t{7};
      default:
        return address_of(guard) + random() % 12288;
    }
  };
  Frames frames{};
  ucontext_t context{};
  for (int round = 0; round < 30000; ++round) {
    for (auto& value : testing::general_registers(context)) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(address());
    }
    auto& pc = testing::pc_of(context);
    testing::sp_of(context) = static_cast<std::remove_reference_t<decltype(pc)>>(address());
    const std::uint64_t code[4] = {address(), ours + random() % 4096, libc + random() % 0x180000,
                                   libc + random() % 0x180000};
    pc = static_cast<std::remove_reference_t<decltype(pc)>>(code[random() % 4]);
    const Result result =
        unwind(&context, frames,
               {.strategy = Strategy(random() % 3), .distrust_stack = random() % 4 == 0});
    EXPECT_GE(result.count, 1u);
    EXPECT_EQ(frames[0], static_cast<std::uint64_t>(pc));
  }
  munmap(guard, 3 * 4096);
}

// A painted stack shows how much of it a walk in a handler has used, cold caches and all.
TEST(Unwind, UsesNoMoreStackThanItSays) {
  if (!testing::signals_are_asynchronous()) {
    GTEST_SKIP() << "ThreadSanitizer's own handler uses the stack as well";
  }
#ifdef DIAL9_SANITIZED
  GTEST_SKIP() << "instrumented frames are larger";
#endif
  prepare();
  static Frames frames;
  static std::uint64_t handler_frame;
  static std::vector<char> stack(256 * 1024, '\x5a');
  std::thread([] {
    const stack_t alternate{stack.data(), 0, stack.size()};
    sigaltstack(&alternate, nullptr);
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    action.sa_sigaction = [](int, siginfo_t*, void* context) {
      handler_frame = address_of(__builtin_frame_address(0));
      unwind(static_cast<ucontext_t*>(context), frames, {.distrust_stack = true});
    };
    struct sigaction before{};
    sigaction(SIGUSR2, &action, &before);
    raise(SIGUSR2);
    sigaction(SIGUSR2, &before, nullptr);
  }).join();
  const auto lowest = std::find_if(stack.begin(), stack.end(), [](char c) { return c != '\x5a'; });
  const std::uint64_t used = handler_frame - address_of(&*lowest);
  RecordProperty("used_bytes", std::to_string(used));
  EXPECT_LE(used, kStackBytes);
  EXPECT_GT(used, 256u) << "the handler seems not to have run on this stack";
}

TEST(OwnStack, OfAThreadIsWhatPthreadSays) {
  prepare();
  std::thread([] {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
    void* low = nullptr;
    std::size_t bytes = 0;
    ASSERT_EQ(pthread_attr_getstack(&attributes, &low, &bytes), 0);
    pthread_attr_destroy(&attributes);
    const StackRange range = own_stack(address_of(__builtin_frame_address(0)));
    EXPECT_EQ(range.low, address_of(low));
    EXPECT_EQ(range.high, address_of(low) + bytes);
  }).join();
}

TEST(OwnStack, OfTheMainThreadIsItsMappingAndNothingBelow) {
  prepare();
  ASSERT_EQ(gettid(), getpid()) << "this test runs on the main thread";
  // Not a local's address: ASan keeps locals elsewhere.
  const StackRange range = own_stack(address_of(__builtin_frame_address(0)));
  EXPECT_TRUE(range.holds(address_of(__builtin_frame_address(0))));
  char page = 0;
  EXPECT_EQ(ProcessMemory().copy(range.low, &page, 1), 1u);
  EXPECT_EQ(ProcessMemory().copy(range.high - 1, &page, 1), 1u);
  EXPECT_EQ(own_stack(range.low - 8).high, 0u);
  EXPECT_EQ(own_stack(range.high).high, 0u);
}

TEST(OwnStack, OfAnotherThreadOrTheHeapIsUnknown) {
  prepare();
  const std::vector<char> heap(100);
  std::uint64_t others = 0;
  std::thread([&] { others = address_of(__builtin_frame_address(0)); }).join();
  for (const std::uint64_t sp : {address_of(heap.data()), others, 0ul, ~0ul}) {
    const StackRange range = own_stack(sp);
    EXPECT_EQ(range.low, range.high);
  }
}

TEST(ProcessMemoryCopy, EndsAtTheFirstUnreadablePage) {
  void* const pages =
      mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<char*>(pages) + 4096, 4096, PROT_NONE);
  std::fill_n(static_cast<char*>(pages), 4096, 'x');
  for (const bool denied : {false, true}) {
    ProcessMemory::deny_kernel_copies(denied);
    std::array<char, 300> to{};
    EXPECT_EQ(ProcessMemory().copy(address_of(pages) + 4096 - 101, to.data(), to.size()), 101u);
    EXPECT_EQ(std::count(to.begin(), to.end(), 'x'), 101);
    EXPECT_EQ(ProcessMemory().copy(address_of(pages) + 4096, to.data(), to.size()), 0u);
    EXPECT_EQ(ProcessMemory().copy(0, to.data(), to.size()), 0u);
    EXPECT_EQ(ProcessMemory().copy(~std::uint64_t{0} - 8, to.data(), to.size()), 0u);
    EXPECT_EQ(ProcessMemory().copy(std::uint64_t{1} << 63, to.data(), to.size()), 0u);
  }
  ProcessMemory::deny_kernel_copies(false);
  munmap(pages, 2 * 4096);
}

}  // namespace
}  // namespace dial9::unwind
