// Every function of the family is sampled, is freed, and behaves as its manual says. The malloc of
// this process is dial9's.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include "heap/testing/heap_recording.h"

namespace dial9::heap {
namespace {

using namespace testing;

// What the compiler doesn't know, so that no call is elided or judged.
std::size_t hidden(std::size_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
void* hidden(void* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

[[gnu::noinline]] void* resize(void* block, std::size_t size) {
  return hidden(std::realloc(hidden(block), hidden(size)));
}

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

const AllocRow* find(const std::vector<AllocRow>& rows, std::uintptr_t address) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->address == address) return &*row;
  }
  return nullptr;
}
const AllocRow* find(const std::vector<AllocRow>& rows, const void* pointer) {
  return find(rows, address_of(pointer));
}

struct alignas(256) Wide {
  char bytes[256];
};

struct Way {
  const char* name;
  std::size_t size;  // recorded
  std::size_t alignment;
  std::function<void*()> allocate;
  std::function<void(void*)> release;
};

std::vector<Way> ways() {
  const auto by_free = [](void* p) { std::free(p); };
  return {
      {"malloc", 40, 16, [] { return std::malloc(hidden(40)); }, by_free},
      {"calloc", 120, 16, [] { return std::calloc(hidden(3), 40); }, by_free},
      {"realloc of null", 50, 16, [] { return std::realloc(nullptr, hidden(50)); }, by_free},
      {"reallocarray", 60, 16, [] { return ::reallocarray(nullptr, hidden(6), 10); }, by_free},
      {"aligned_alloc", 128, 64, [] { return ::aligned_alloc(64, hidden(128)); }, by_free},
      {"memalign", 70, 128, [] { return ::memalign(128, hidden(70)); }, by_free},
      {"valloc", 80, 4096, [] { return ::valloc(hidden(80)); }, by_free},
      {"pvalloc", 4096, 4096, [] { return ::pvalloc(hidden(90)); }, by_free},
      {"posix_memalign", 100, 32,
       [] {
         void* p = nullptr;
         EXPECT_EQ(::posix_memalign(&p, 32, hidden(100)), 0);
         return p;
       },
       by_free},
      {"new", 8, 16, [] { return hidden(static_cast<void*>(new std::uint64_t)); },
       [](void* p) { delete static_cast<std::uint64_t*>(p); }},
      {"new[]", 33, 16, [] { return hidden(static_cast<void*>(new char[hidden(33)])); },
       [](void* p) { delete[] static_cast<char*>(p); }},
      {"new nothrow", 8, 16,
       [] { return hidden(static_cast<void*>(new (std::nothrow) std::uint64_t)); },
       [](void* p) { delete static_cast<std::uint64_t*>(p); }},
      {"aligned new", 256, 256, [] { return hidden(static_cast<void*>(new Wide)); },
       [](void* p) { delete static_cast<Wide*>(p); }},
      {"aligned new[]", 512, 256, [] { return hidden(static_cast<void*>(new Wide[2])); },
       [](void* p) { delete[] static_cast<Wide*>(p); }},
      {"sized delete", 24, 16, [] { return ::operator new(hidden(24)); },
       [](void* p) { ::operator delete(p, 24); }},
      {"strdup, within libc", 6, 16, [] { return static_cast<void*>(::strdup("dial9")); }, by_free},
  };
}

TEST(MallocFamily, EachWayToAllocateIsASampleAndEachWayToFreeEndsIt) {
  HeapRecording recording({.sample_rate_bytes = 1});
  for (const Way& way : ways()) {
    void* pointer = way.allocate();
    ASSERT_NE(pointer, nullptr) << way.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % way.alignment, 0U) << way.name;
    EXPECT_GE(::malloc_usable_size(pointer), way.size) << way.name;
    std::memset(pointer, 1, way.size);
    const auto while_alive = recording.rows();
    const AllocRow* row = find(while_alive, pointer);
    ASSERT_NE(row, nullptr) << way.name;
    EXPECT_EQ(row->size, way.size) << way.name;
    EXPECT_EQ(row->freed_ns, 0U) << way.name;
    const std::uint64_t at_ns = row->at_ns;
    way.release(pointer);
    const auto after = recording.rows();
    const auto same = std::ranges::find_if(after, [&](const AllocRow& one) {
      return one.at_ns == at_ns && one.address == reinterpret_cast<std::uintptr_t>(pointer);
    });
    ASSERT_NE(same, after.end()) << way.name;
    EXPECT_NE(same->freed_ns, 0U) << way.name;
  }
}

TEST(MallocFamily, ReallocIsAFreeAndAnAllocation) {
  HeapRecording recording({.sample_rate_bytes = 1});
  void* small = allocate_one(64);
  const auto small_at = reinterpret_cast<std::uintptr_t>(small);
  void* large = resize(small, 100'000);
  const auto rows = recording.rows();
  const AllocRow* grown = find(rows, large);
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(grown->size, 100'000U);
  EXPECT_EQ(grown->freed_ns, 0U);
  const auto old = std::ranges::find_if(
      rows, [&](const AllocRow& row) { return row.address == small_at && row.size == 64; });
  ASSERT_NE(old, rows.end());
  EXPECT_NE(old->freed_ns, 0U);
  EXPECT_LE(old->freed_ns, grown->at_ns);
  std::free(large);
}

TEST(MallocFamily, AReallocThatFailsLeavesTheBlockAlive) {
  HeapRecording recording({.sample_rate_bytes = 1});
  void* block = allocate_one(64);
  const std::uintptr_t at = address_of(block);
  EXPECT_EQ(resize(block, SIZE_MAX / 4), nullptr);
  EXPECT_EQ(::reallocarray(hidden(block), hidden(SIZE_MAX / 2), 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  const auto alive = recording.rows();
  ASSERT_NE(find(alive, at), nullptr);
  EXPECT_EQ(find(alive, at)->freed_ns, 0U);
  std::free(block);
  const auto rows = recording.rows();
  EXPECT_NE(find(rows, at)->freed_ns, 0U);
}

TEST(MallocFamily, ReallocToNothingIsAFree) {
  HeapRecording recording({.sample_rate_bytes = 1});
  void* block = allocate_one(64);
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  void* nothing = resize(block, 0);
  const auto rows = recording.rows();
  const auto row = std::ranges::find_if(
      rows, [&](const AllocRow& one) { return one.address == at && one.size == 64; });
  ASSERT_NE(row, rows.end());
  EXPECT_NE(row->freed_ns, 0U);
  std::free(nothing);
}

TEST(MallocFamily, FailuresAreTheAllocatorsAndCostNoSample) {
  HeapRecording recording({.sample_rate_bytes = 1});
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 2 - 4096}) {
    errno = 0;
    EXPECT_EQ(std::malloc(hidden(size)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(::operator new(hidden(size), std::nothrow), nullptr);
    EXPECT_THROW((void)::operator new(hidden(size)), std::bad_alloc);
  }
  EXPECT_EQ(std::calloc(hidden(SIZE_MAX / 2), 3), nullptr);
  EXPECT_EQ(::pvalloc(hidden(SIZE_MAX - 1)), nullptr);
  void* unchanged = &recording;
  EXPECT_EQ(::posix_memalign(&unchanged, hidden(3), 64), EINVAL);
  EXPECT_EQ(unchanged, &recording);
  void* after = allocate_one(5);
  const auto rows = recording.rows();
  EXPECT_NE(find(rows, after), nullptr) << "the countdown goes on as before";
  EXPECT_TRUE(
      std::ranges::all_of(rows, [](const AllocRow& row) { return row.size < SIZE_MAX / 4; }));
  std::free(after);
}

TEST(MallocFamily, CallocGivesZeroesAndFreeKeepsErrno) {
  HeapRecording recording({.sample_rate_bytes = 1});
  for (int i = 0; i < 200; ++i) {
    auto* bytes = static_cast<unsigned char*>(std::calloc(hidden(100), 10));
    EXPECT_TRUE(std::all_of(bytes, bytes + 1'000, [](unsigned char b) { return b == 0; }));
    std::memset(bytes, 0xFF, 1'000);
    errno = 1234;
    std::free(bytes);
    EXPECT_EQ(errno, 1234);
  }
  std::free(nullptr);
  EXPECT_EQ(errno, 1234);
}

TEST(MallocFamily, TheNewHandlerHasItsTries) {
  static int calls = 0;
  calls = 0;
  const std::new_handler before = std::set_new_handler([] {
    if (++calls >= 3) throw std::bad_alloc();
  });
  EXPECT_THROW((void)::operator new(hidden(SIZE_MAX / 2 - 4096)), std::bad_alloc);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(::operator new(hidden(SIZE_MAX / 2 - 4096), std::nothrow), nullptr);
  std::set_new_handler(before);
}

// --- Children

int child_status(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(MallocFamily, TheChildOfAForkAllocatesFreesAndIsSilent) {
  HeapRecording recording({.sample_rate_bytes = 1});
  std::vector<void*> mine;
  for (int i = 0; i < 1'000; ++i) mine.push_back(allocate_one(32));
  const int result = child_status([&] {
    for (void* block : mine) std::free(block);
    for (int i = 0; i < 1'000; ++i) std::free(allocate_other(64));
    return heap_sample_status().live_samples == 0 ? 42 : 3;
  });
  EXPECT_EQ(result, 42);
  const auto rows = recording.rows();
  EXPECT_EQ(
      std::ranges::count_if(rows, [](const auto& r) { return passes(r.frames, allocate_other); }),
      0);
  for (void* block : mine) {
    ASSERT_NE(find(rows, block), nullptr);
    EXPECT_EQ(find(rows, block)->freed_ns, 0U) << "the child freed a copy";
  }
  for (void* block : mine) std::free(block);
}

// Whatever other threads were doing at the moment of the fork, locks of the live set included.
TEST(MallocFamily, ForksAmongBusyThreadsNeverHang) {
  HeapRecording recording({.sample_rate_bytes = 1});
  std::atomic<bool> goes_on{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (goes_on) std::free(allocate_one(16));
    });
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(child_status([] {
                ::alarm(20);
                for (int k = 0; k < 2'000; ++k) std::free(allocate_one(16));
                return 7;
              }),
              7);
  }
  goes_on = false;
  for (std::thread& thread : threads) thread.join();
}

TEST(MallocFamily, ARecorderThatIsRestartedInTheChildSamplesThere) {
  HeapRecording recording({.sample_rate_bytes = 1});
  std::free(allocate_one(32));
  const int result = child_status([&] {
    if (!recording.recorder().restart_in_child()) return 3;
    for (int i = 0; i < 100 && !heap_sample_status().is_sampling; ++i) {
      recording.recorder().rotate();
    }
    std::free(allocate_other(64));
    const auto rows = recording.rows();
    const auto mine = std::ranges::count_if(
        rows, [](const AllocRow& row) { return passes(row.frames, allocate_other); });
    return mine == 1 ? 42 : 4;
  });
  EXPECT_EQ(result, 42);
}

// Thread-local destructors and pthread keys run after the thread's own code; exits after main.
TEST(MallocFamily, ThreadsAllocateAndFreeInTheirLastDestructors) {
  HeapRecording recording({.sample_rate_bytes = 1});
  struct Late {
    ~Late() { std::free(allocate_one(48)); }
  };
  for (int i = 0; i < 50; ++i) {
    std::thread([] {
      thread_local Late late;
      (void)hidden(static_cast<void*>(&late));
    }).join();
  }
  const auto rows = recording.rows();
  EXPECT_EQ(
      std::ranges::count_if(rows, [](const auto& r) { return passes(r.frames, allocate_one); }),
      50);
}

}  // namespace
}  // namespace dial9::heap
