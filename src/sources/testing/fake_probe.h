// Threads that a test makes up, as a probe shows them: their account, what they are blocked in,
// their switches. Strongest property: time passes only where the test lets it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sources/thread_probe.h"

namespace dial9::internal::testing {

inline constexpr std::uint64_t kMs = 1'000'000;
inline constexpr std::uint64_t kLookCostNs = 1'000;

struct FakeThread {
  SchedReading account{0, 0, 1};
  std::uint64_t uncharged_slices = 0;  // of its slices: those that its CPU clock doesn't show
  Look state = Look::kBlocked;
  std::vector<std::uint64_t> frames{0x1000, 0x2000};
  std::string name = "made-up";
  bool is_followed = false;
  bool has_socket = false;
  std::vector<ThreadSwitch> switches{};
  std::vector<SwitchStack> stacks{};
};

class FakeProbe final : public ThreadProbe {
 public:
  std::map<std::uint32_t, FakeThread> threads;
  std::uint64_t now = 1'000 * kMs;
  std::uint64_t cpu = 0;
  bool has_clocks = true;  // of threads
  bool has_accounts = true;
  std::optional<std::uint32_t> replaced;  // another thread has its id; told once
  bool is_ended = false;
  bool has_count = true;
  std::uint64_t lists = 0;
  std::uint64_t accounts = 0;
  std::uint64_t clocks = 0;
  std::uint64_t looks = 0;
  std::vector<std::uint32_t> forgotten;

  std::uint64_t now_ns() override { return now; }
  std::uint64_t cpu_ns() override { return cpu; }
  bool list(std::vector<std::uint32_t>* tids) override {
    ++lists;
    tids->clear();
    for (const auto& [tid, thread] : threads) tids->push_back(tid);
    return true;
  }
  bool has_ended() const override { return is_ended; }
  std::optional<std::uint64_t> count() override {
    return has_count ? std::optional<std::uint64_t>(threads.size() + 1) : std::nullopt;
  }
  std::optional<SchedReading> account(std::uint32_t tid) override {
    ++accounts;
    cpu += kLookCostNs;
    is_ended = replaced == tid;
    if (is_ended) {
      replaced.reset();
      return std::nullopt;
    }
    const auto found = threads.find(tid);
    if (!has_accounts || found == threads.end()) return std::nullopt;
    return found->second.account;
  }
  std::optional<std::uint64_t> charged_ns(std::uint32_t tid) override {
    ++clocks;
    cpu += kLookCostNs / 3;
    const auto found = threads.find(tid);
    if (!has_clocks || found == threads.end()) return std::nullopt;
    const FakeThread& fake = found->second;
    return fake.account.run_ns + (fake.account.slices - fake.uncharged_slices) * kLookCostNs;
  }
  Look look(std::uint32_t tid, const SchedReading&, BlockedThread* thread) override {
    ++looks;
    cpu += 5 * kLookCostNs;
    const FakeThread& fake = threads.at(tid);
    if (fake.state != Look::kBlocked) return fake.state;
    *thread = {};
    thread->at_ns = now;
    thread->call = "recv";
    thread->cause = "socket";
    thread->fd = 12;
    thread->peer = "10.0.0.7:6379";
    thread->frames = fake.frames;
    thread->unwound_by = "tables";
    if (fake.has_socket) thread->socket = 4'711;
    return Look::kBlocked;
  }
  std::string name(std::uint32_t tid) override { return threads.at(tid).name; }
  void forget(std::uint32_t tid) override { forgotten.push_back(tid); }
  std::optional<SocketHealth> socket_health(std::uint32_t, const SchedReading&,
                                            const BlockedThread& thread) override {
    EXPECT_EQ(thread.socket, 4'711U);
    SocketHealth health;
    health.state = 1;
    health.rtt_ns = 300'000;
    health.since_received_ns = 70 * kMs;
    return health;
  }
  bool switches(std::uint32_t tid, std::vector<ThreadSwitch>* to,
                std::vector<SwitchStack>* stacks) override {
    const auto found = threads.find(tid);
    if (found == threads.end() || !found->second.is_followed) return false;
    std::vector<ThreadSwitch>& fresh = found->second.switches;
    to->insert(to->end(), fresh.begin(), fresh.end());
    fresh.clear();
    std::ranges::move(found->second.stacks, std::back_inserter(*stacks));
    found->second.stacks.clear();
    return true;
  }
  std::string trouble() const override { return {}; }
};

}  // namespace dial9::internal::testing
