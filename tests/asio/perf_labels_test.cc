// Tenants with known shares of the CPU time, served by coroutines that move between workers, and
// sampled by perf, which can't ask a thread for its label: each comes back with its share.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "analysis/cpu_flame.h"
#include "analysis/loader.h"
#include "dial9/cpu_samples.h"
#include "dial9/label.h"
#include "net.h"
#include "recording.h"
#include "session/testing/perf_recording.h"

namespace dial9::test {
namespace {

using namespace std::chrono_literals;

using dial9::testing::burn;
using dial9::testing::PerfRecording;

constexpr int kRequests = 36;

// By tenant, in ms.
class Spent {
 public:
  void add(const std::string& tenant, double ms) {
    const std::lock_guard lock(mutex_);
    by_tenant_[tenant] += ms;
  }
  const std::map<std::string, double>& by_tenant() const { return by_tenant_; }

 private:
  std::mutex mutex_;
  std::map<std::string, double> by_tenant_;
};

// A coroutine inside the request's: of the same task.
net::awaitable<void> rest(std::chrono::microseconds time) {
  net::steady_timer timer(co_await net::this_coro::executor, time);
  co_await timer.async_wait(net::use_awaitable);
}

net::awaitable<void> request(const char* tenant, double ms, Spent& spent, std::latch& half,
                             std::latch& all) {
  constexpr int kParts = 4;
  {
    const label scope("tenant", tenant);
    for (int part = 0; part < kParts; ++part) {
      spent.add(tenant, burn(ms / kParts));
      co_await rest(100us);
    }
  }
  half.count_down();
  all.count_down();
}

class AsioPerfLabels : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string refusal = recording_.start(32 << 20);
    if (!refusal.empty()) GTEST_SKIP() << refusal;
  }
  void TearDown() override { recording_.stop(); }

  analysis::Trace trace() {
    EXPECT_TRUE(recording_.recorder().rotate(30s));
    const std::vector<SegmentBytes> segments = recording_.recorder().sealed_segments();
    std::vector<std::span<const std::uint8_t>> files;
    for (const SegmentBytes& segment : segments) files.emplace_back(segment.bytes);
    return analysis::load(files);
  }

  PerfRecording recording_;
};

TEST_F(AsioPerfLabels, ThreeTenantsOfCoroutinesOnTwoWorkersComeOutWithinTwoPercent) {
  Spent spent;
  std::latch half(kRequests / 2);
  std::latch all(kRequests);
  net::io_context io;
  auto work = net::make_work_guard(io);
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back([&] { io.run(); });
  // Each is known as a worker by its first handler, and its thread by the first park behind that.
  std::latch both(2);
  for (int i = 0; i < 2; ++i) net::post(io, [&] { both.arrive_and_wait(); });
  recording_.wait_until_sampled(3);
  std::minstd_rand random(7);
  std::latch early(kRequests);  // nobody waits for it
  for (int i = 0; i < kRequests; ++i) {
    const char* const tenants[] = {"acme", "acme", "acme", "bolt", "bolt", "crux"};
    const double ms = 40.0 + static_cast<double>(random() % 80);
    dial9::asio::co_spawn(io.get_executor(), "request",
                          request(tenants[i % 6], ms, spent, i % 2 == 0 ? half : early, all));
  }
  half.wait();
  recording_.recorder().rotate(30s);  // a segment begins with a list of what is open
  all.wait();
  work.reset();
  for (std::thread& worker : workers) worker.join();

  const analysis::Trace found = trace();
  std::uint64_t weight = 1;
  for (std::size_t i = 0; i < found.samples.size(); ++i) {
    weight = std::max<std::uint64_t>(weight, found.samples[i].weight);
  }
  const double coarse = static_cast<double>(weight - 1) * 1'000 / PerfRecording::kHz;
  double sum = 0;
  for (const auto& [tenant, ms] : spent.by_tenant()) sum += ms;
  if (8 * coarse > 0.1 * sum) GTEST_SKIP() << "samples too coarse here: " << coarse << " ms";
  const auto labelled_ms = [&](const std::string& label) {
    const analysis::SampleFilter filter{.label = label};
    const analysis::CpuFlame flame = analysis::cpu_flame(found, filter, nullptr);
    return static_cast<double>(flame.tree.total()) / 1e6;
  };
  const double labelled = labelled_ms("tenant");
  EXPECT_NEAR(labelled, sum, 0.05 * sum + 8 * coarse);
  for (const auto& [tenant, ms] : spent.by_tenant()) {
    EXPECT_NEAR(labelled_ms("tenant=" + tenant) / labelled, ms / sum, 0.02 + 8 * coarse / sum)
        << tenant << " of " << labelled << " ms, coarse by " << coarse;
  }
}

}  // namespace
}  // namespace dial9::test
