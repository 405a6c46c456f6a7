// See thread_stack.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/thread_stack.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <string_view>

#include "base/unique_fd.h"
#include "unwind/native.h"

namespace dial9::unwind {
namespace {

constexpr std::int64_t kUnknown = -1;
constexpr std::uint64_t kDescriptorBytes = 4096;  // glibc's struct pthread has 2,304

// All relaxed: each is a value of its own, checked against the thread at hand before it is used.
std::atomic<std::int64_t> g_block_offset{kUnknown};  // of {block, block size, guard size}
std::atomic<std::uint64_t> g_main_low{0};
std::atomic<std::uint64_t> g_main_high{0};
std::atomic<bool> g_trusted{true};

std::uint64_t thread_pointer() noexcept {
  return std::bit_cast<std::uint64_t>(__builtin_thread_pointer());
}

StackRange stack_by_pthread() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return {};
  }
  void* address = nullptr;
  std::size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &address, &size) == 0;
  pthread_attr_destroy(&attributes);
  const auto low = std::bit_cast<std::uint64_t>(address);
  return known ? StackRange{low, low + size} : StackRange{};
}

// What the descriptor says at `offset` from the thread pointer. Loads three words. The main
// thread's has no block, and its stack's end for a size.
StackRange range_at(std::uint64_t tp, std::int64_t offset) noexcept {
  const std::uint64_t place = tp + static_cast<std::uint64_t>(offset);
  const std::uint64_t block = native::load_word(place);
  const std::uint64_t size = native::load_word(place + 8);
  const std::uint64_t guard = native::load_word(place + 16);
  const bool is_range = block != 0 && guard <= size && size < ~block;
  return is_range ? StackRange{block + guard, block + size} : StackRange{};
}

// On a thread that pthread_create made: its descriptor lies at the top of its stack.
void* calibrate_here(void*) noexcept {
  const StackRange range = stack_by_pthread();
  const std::uint64_t tp = thread_pointer();
  const auto self = std::bit_cast<std::uint64_t>(pthread_self());
  if (!range.holds(self) || !range.holds(tp)) {
    return nullptr;
  }
  const std::uint64_t end = range.high - self < kDescriptorBytes ? range.high
                                                                  : self + kDescriptorBytes;
  for (std::uint64_t place = self; place + 24 <= end; place += 8) {
    const auto offset = static_cast<std::int64_t>(place - tp);
    const StackRange candidate = range_at(tp, offset);
    if (candidate.low == range.low && candidate.high == range.high) {
      g_block_offset.store(offset, std::memory_order_relaxed);
      return nullptr;
    }
  }
  return nullptr;
}

void calibrate_on_new_thread() noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {  // the host's signals aren't for it
    return;
  }
  pthread_t thread;
  if (pthread_create(&thread, nullptr, calibrate_here, nullptr) == 0) {
    pthread_join(thread, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// "7ffd1c000000-7ffd1c021000 rw-p 00000000 00:00 0    [stack]"
void note_main_stack(std::string_view line) noexcept {
  if (!line.ends_with("[stack]")) {
    return;
  }
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, low, 16);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-' ||
      std::from_chars(first.ptr + 1, end, high, 16).ec != std::errc{} || low >= high) {
    return;
  }
  g_main_low.store(low, std::memory_order_relaxed);
  g_main_high.store(high, std::memory_order_relaxed);
}

void find_main_stack() noexcept {
  const UniqueFd file(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  std::size_t used = 0;
  while (file.get() >= 0) {
    const ssize_t got = read(file.get(), buffer.data() + used, buffer.size() - used);
    if (got <= 0) {
      return;
    }
    used += static_cast<std::size_t>(got);
    std::string_view rest(buffer.data(), used);
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      note_main_stack(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    if (rest.size() == buffer.size()) {
      rest = {};  // a path longer than the buffer: not the stack's line
    }
    std::copy(rest.begin(), rest.end(), buffer.begin());
    used = rest.size();
  }
}

}  // namespace

void calibrate_stacks() noexcept {
  find_main_stack();
  if (g_block_offset.load(std::memory_order_relaxed) != kUnknown) {
    return;
  }
  if (syscall(SYS_gettid) == getpid()) {
    calibrate_on_new_thread();
  } else {
    calibrate_here(nullptr);
  }
}

StackRange own_stack(std::uint64_t sp) noexcept {
  if (!g_trusted.load(std::memory_order_relaxed)) {
    return {};
  }
  const std::int64_t offset = g_block_offset.load(std::memory_order_relaxed);
  if (offset != kUnknown) {
    const std::uint64_t tp = thread_pointer();
    const StackRange range = range_at(tp, offset);
    if (range.holds(tp) && range.holds(sp)) {
      return range;
    }
  }
  const StackRange main{g_main_low.load(std::memory_order_relaxed),
                        g_main_high.load(std::memory_order_relaxed)};
  return main.holds(sp) ? main : StackRange{};
}

void trust_own_stacks(bool trusted) noexcept {
  g_trusted.store(trusted, std::memory_order_relaxed);
}

}  // namespace dial9::unwind
