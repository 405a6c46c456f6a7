// See blocked_worker.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/testing/blocked_worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "recorder/recording_state.h"
#include "sources/futex_callers.h"
#include "unwind/unwind.h"

extern "C" {  // the linker's, of the sections below
extern const char __start_dial9_read_one, __stop_dial9_read_one;
extern const char __start_dial9_wait_for_byte, __stop_dial9_wait_for_byte;
}

namespace dial9::internal::testing {

Pipe::Pipe() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  out.reset(fds[0]);
  in.reset(fds[1]);
}

void Pipe::release() { EXPECT_EQ(::write(in.get(), "x", 1), 1); }

// Each alone in a section, since the linker names its bounds.
[[gnu::section("dial9_read_one")]] void read_one(int fd) {
  char byte = 0;
  EXPECT_EQ(::read(fd, &byte, 1), 1);
}
[[gnu::section("dial9_wait_for_byte")]] void wait_for_byte(int fd) {
  read_one(fd);
  asm volatile("");
}

std::size_t frame_of(const std::vector<std::uint64_t>& frames, void (*function)(int)) {
  const bool is_inner = function == read_one;
  const auto begin = reinterpret_cast<std::uintptr_t>(is_inner ? &__start_dial9_read_one
                                                               : &__start_dial9_wait_for_byte);
  const auto end = reinterpret_cast<std::uintptr_t>(is_inner ? &__stop_dial9_read_one
                                                             : &__stop_dial9_wait_for_byte);
  const auto at =
      std::ranges::find_if(frames, [&](std::uint64_t pc) { return pc > begin && pc <= end; });
  return at == frames.end() ? npos : static_cast<std::size_t>(at - frames.begin());
}

Worker::Worker(std::function<void()> work) {
  thread_ = std::thread([this, work = std::move(work)] {
    std::array<std::uint64_t, 64> frames{};
    const unwind::Result result = unwind::unwind_here(frames);
    outer_.assign(frames.begin(), frames.begin() + result.count);
    tid_.store(this_tid(), std::memory_order_release);
    work();
  });
  while (tid() == 0) std::this_thread::yield();
}

// Without its innermost two frames: those were at another place of their function.
bool Worker::is_outermost(const std::vector<std::uint64_t>& frames) const {
  if (outer_.size() < 4) return false;
  const auto common = static_cast<std::ptrdiff_t>(std::min<std::size_t>(outer_.size() - 2, 4));
  return static_cast<std::ptrdiff_t>(frames.size()) > common &&
         std::equal(outer_.end() - common, outer_.end(), frames.end() - common);
}

void OffCpuTest::SetUp() {
  unwind::prepare();
  prepare_futex_callers();
  probe = make_thread_probe();
  ASSERT_NE(probe, nullptr);
  if (!probe->trouble().empty()) GTEST_SKIP() << probe->trouble();
}

BlockedThread OffCpuTest::look(std::uint32_t tid, std::string_view call) {
  BlockedThread thread;
  for (;;) {
    const auto reading = probe->account(tid);
    if (reading && probe->look(tid, *reading, &thread) == Look::kBlocked && thread.call == call) {
      return thread;
    }
    std::this_thread::yield();
  }
}

}  // namespace dial9::internal::testing
