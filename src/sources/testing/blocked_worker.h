// Threads that block on what a test holds, and a look at them from outside. Strongest property: no
// test waits for wall time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "sources/thread_probe.h"

namespace dial9::internal::testing {

struct Pipe {
  Pipe();
  void release();  // one reader
  UniqueFd out;
  UniqueFd in;
};

// Never inlined and never a tail call: their addresses are looked for in stacks.
[[gnu::noinline]] void read_one(int fd);
[[gnu::noinline]] void wait_for_byte(int fd);  // calls read_one
// Where in the frames the function is; npos: nowhere.
inline constexpr std::size_t npos = ~std::size_t{0};
std::size_t frame_of(const std::vector<std::uint64_t>& frames, void (*function)(int));

// A thread that runs `work`.
class Worker {
 public:
  explicit Worker(std::function<void()> work);
  ~Worker() { thread_.join(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  std::uint32_t tid() const { return tid_.load(std::memory_order_acquire); }
  // Does the stack end as the thread's own walk at its begin did?
  bool is_outermost(const std::vector<std::uint64_t>& frames) const;

 private:
  std::thread thread_;
  std::vector<std::uint64_t> outer_;
  std::atomic<std::uint32_t> tid_{0};
};

class OffCpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // Looks until the thread is blocked in `call`.
  BlockedThread look(std::uint32_t tid, std::string_view call);
  std::unique_ptr<ThreadProbe> probe;
};

}  // namespace dial9::internal::testing
