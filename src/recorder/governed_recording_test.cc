// A whole recorder under a budget: real threads, an injected clock, and a truth that is known by
// the events' numbers. Judged are counts and bytes, never time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <map>
#include <thread>
#include <vector>

#include "dial9/event.h"
#include "dial9/runtime.h"
#include "recorder/governor.h"
#include "recorder/shedding.h"
#include "recorder/stream_source.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Order, (std::uint64_t, number), (std::uint64_t, amount));
DIAL9_EVENT(Refund, (std::uint64_t, number));

constexpr std::uint64_t kStepNs = 5 * kTestMs;
constexpr std::uint64_t kStepsASecond = kTestSecond / kStepNs;
constexpr double kBudgetBytes = 2e6;
constexpr std::size_t kThreads = 4;
constexpr std::uint64_t kOrdersAStep = 100;  // of each thread: about half of the budget
constexpr std::uint64_t kOrdersARefund = 5;

RecorderOptions options() {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{256} << 20);
  options.max_mb_per_sec = kBudgetBytes / 1e6;
  return options;
}

struct Truth {
  std::uint64_t orders = 0;
  std::uint64_t amount = 0;
  std::uint64_t refunds = 0;
};

// Four threads that record orders, step by step of the recorder's clock.
class Shop {
 public:
  Shop() : recorder_(options()), barrier_(kThreads + 1) {
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, i] { work(i); });
    }
  }
  ~Shop() {
    orders_a_step_ = 0;
    barrier_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(double seconds, std::uint64_t load) {
    const auto steps = static_cast<std::uint64_t>(seconds * kStepsASecond);
    for (std::uint64_t i = 0; i < steps; ++i) {
      orders_a_step_ = load * kOrdersAStep;
      barrier_.arrive_and_wait();
      barrier_.arrive_and_wait();
      recorder_.advance(kStepNs);
      recorder_.step();
    }
  }
  std::uint64_t bytes() { return recorder_->status().bytes_written; }
  SteppedRecorder& recorder() { return recorder_; }
  Truth truth() const {
    Truth sum;
    for (const Truth& part : truths_) {
      sum.orders += part.orders;
      sum.amount += part.amount;
      sum.refunds += part.refunds;
    }
    return sum;
  }

 private:
  void work(std::size_t thread) {
    for (;;) {
      barrier_.arrive_and_wait();
      if (orders_a_step_ == 0) return;
      Truth truth = truths_[thread];
      for (std::uint64_t i = 0; i < orders_a_step_; ++i) {
        const std::uint64_t amount = 100 + truth.orders % 37;
        record(Order{truth.orders++, amount});
        truth.amount += amount;
        if (truth.orders % kOrdersARefund == 0) record(Refund{truth.refunds++});
      }
      truths_[thread] = truth;
      barrier_.arrive_and_wait();
    }
  }

  SteppedRecorder recorder_;
  std::barrier<> barrier_;
  std::uint64_t orders_a_step_ = 0;
  Truth truths_[kThreads];
  std::vector<std::thread> threads_;
};

// The weights of a class: how many a kept one stands for, by time.
class Weights {
 public:
  Weights(const Trace& trace, const std::string& of) {
    const std::vector<std::string> classes = trace.texts("RecorderShedEvent", "class");
    const std::vector<std::uint64_t> ends = trace.stamps("RecorderShedEvent");
    const std::vector<std::uint64_t> begins = trace.numbers("RecorderShedEvent", "since_ns");
    const std::vector<std::uint64_t> kept = trace.numbers("RecorderShedEvent", "kept");
    const std::vector<std::uint64_t> shed = trace.numbers("RecorderShedEvent", "shed");
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (classes[i] != of || kept[i] == 0) continue;
      const double weight = 1 + static_cast<double>(shed[i]) / static_cast<double>(kept[i]);
      windows_[begins[i]] = {ends[i], weight};
    }
  }
  double at(std::uint64_t stamp_ns) const {
    auto after = windows_.upper_bound(stamp_ns);
    if (after == windows_.begin()) return 1;
    const Window& window = std::prev(after)->second;
    return stamp_ns < window.end_ns ? window.weight : 1;
  }

 private:
  struct Window {
    std::uint64_t end_ns;
    double weight;
  };
  std::map<std::uint64_t, Window> windows_;
};

void expect_within_3_percent(double estimate, std::uint64_t truth) {
  EXPECT_NEAR(estimate, static_cast<double>(truth), static_cast<double>(truth) * 0.03);
}

TEST(GovernedRecording, keeps_a_burst_within_its_budget_and_its_totals_near_the_truth) {
  Shop shop;
  shop.run(1, 1);
  EXPECT_EQ(shop.recorder()->status().events_shed, 0U);
  for (int second = 0; second < 5; ++second) {
    const std::uint64_t before = shop.bytes();
    shop.run(1, 20);
    EXPECT_LE(static_cast<double>(shop.bytes() - before), kBudgetBytes * 1.1) << second;
  }
  shop.run(2, 1);

  const Trace trace = shop.recorder().read();
  const Truth truth = shop.truth();
  const Weights weights(trace, "events");
  double orders = 0;
  double amount = 0;
  double refunds = 0;
  const std::vector<std::uint64_t> stamps = trace.stamps("Order");
  const std::vector<std::uint64_t> amounts = trace.numbers("Order", "amount");
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    orders += weights.at(stamps[i]);
    amount += weights.at(stamps[i]) * static_cast<double>(amounts[i]);
  }
  for (const std::uint64_t stamp : trace.stamps("Refund")) refunds += weights.at(stamp);
  EXPECT_LT(stamps.size(), truth.orders / 5);
  expect_within_3_percent(orders, truth.orders);
  expect_within_3_percent(amount, truth.amount);
  expect_within_3_percent(refunds, truth.refunds);
}

// What four workers of many tasks did, which are woken and polled.
struct Polled {
  std::uint64_t polls = 0;
  std::uint64_t amount = 0;  // of each poll what its task is worth
};
std::uint64_t worth(std::uint64_t task) { return 100 + task * 7919 % 37; }

Polled poll_for(SteppedRecorder& recorder, std::uint64_t steps, std::uint64_t polls_a_step) {
  static const runtime::RuntimeId id = runtime::register_runtime("shop");
  static runtime::Place place{"shop.cc:1"};
  constexpr std::uint64_t kTasks = 3'001;
  std::barrier barrier(kThreads + 1);
  Polled parts[kThreads];
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      runtime::enter_worker(id);
      for (std::uint64_t step = 0; step < steps; ++step) {
        for (std::uint64_t i = 0; i < polls_a_step; ++i) {
          const runtime::TaskRef task{1 + t * kTasks + parts[t].polls++ % kTasks, &place};
          runtime::task_ready(task.id);
          const runtime::PollScope poll(id, task);
          parts[t].amount += worth(task.id);
        }
        barrier.arrive_and_wait();
        barrier.arrive_and_wait();
      }
    });
  }
  for (std::uint64_t step = 0; step < steps; ++step) {
    barrier.arrive_and_wait();
    recorder.advance(kStepNs);
    recorder.step();
    barrier.arrive_and_wait();
  }
  for (std::thread& thread : threads) thread.join();
  Polled all;
  for (const Polled& part : parts) {
    all.polls += part.polls;
    all.amount += part.amount;
  }
  return all;
}

TEST(GovernedRecording, keeps_a_burst_of_polls_within_its_budget_and_their_totals_near_the_truth) {
  SteppedRecorder recorder(options());
  Polled truth = poll_for(recorder, kStepsASecond, 40);
  const std::uint64_t shed_before = recorder->status().events_shed;
  for (int second = 0; second < 3; ++second) {
    const std::uint64_t before = recorder->status().bytes_written;
    const Polled more = poll_for(recorder, kStepsASecond, 20 * 40);
    truth.polls += more.polls;
    truth.amount += more.amount;
    const auto took = static_cast<double>(recorder->status().bytes_written - before);
    EXPECT_LE(took, kBudgetBytes * 1.1) << second;
  }
  EXPECT_EQ(shed_before, 0U);
  const Trace trace = recorder.read();
  const Weights weights(trace, "polls");
  double polls = 0;
  double amount = 0;
  const std::vector<std::uint64_t> stamps = trace.stamps("PollStartEvent");
  const std::vector<std::uint64_t> tasks = trace.numbers("PollStartEvent", "task_id");
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    polls += weights.at(stamps[i]);
    amount += weights.at(stamps[i]) * static_cast<double>(worth(tasks[i]));
  }
  EXPECT_LT(stamps.size(), truth.polls / 4);
  expect_within_3_percent(polls, truth.polls);
  expect_within_3_percent(amount, truth.amount);
}

TEST(GovernedRecording, accounts_for_every_event_as_written_dropped_or_shed) {
  Shop shop;
  shop.run(2, 20);
  const Trace trace = shop.recorder().read();
  const RecorderStatus status = shop.recorder()->status();
  const Truth truth = shop.truth();
  EXPECT_GT(status.events_shed, 0U);
  EXPECT_EQ(
      trace.count("Order") + trace.count("Refund") + status.events_shed + status.events_dropped,
      truth.orders + truth.refunds);
  ASSERT_EQ(status.shed_by_class.size(), 1U);
  EXPECT_EQ(status.shed_by_class[0].kind, "events");
  EXPECT_EQ(status.shed_by_class[0].count, status.events_shed);
  EXPECT_GT(status.shed_by_class[0].keep_one_in, 1);
  std::uint64_t told = 0;
  for (const std::uint64_t shed : trace.numbers("RecorderShedEvent", "shed")) told += shed;
  EXPECT_EQ(told, status.events_shed);
}

TEST(GovernedRecording, records_everything_again_after_a_burst) {
  Shop shop;
  shop.run(1, 20);
  shop.run(8, 1);
  const std::uint64_t shed = shop.recorder()->status().events_shed;
  shop.run(1, 1);
  EXPECT_EQ(shop.recorder()->status().events_shed, shed);
  EXPECT_EQ(shop.recorder()->status().shed_by_class[0].keep_one_in, 1);
}

TEST(GovernedRecording, tells_a_new_segment_the_rates_of_what_comes_into_it) {
  Shop shop;
  shop.run(1, 20);
  ASSERT_TRUE(shop.recorder()->rotate(std::chrono::seconds(1)));
  shop.run(0.05, 20);
  ASSERT_TRUE(shop.recorder()->rotate(std::chrono::seconds(1)));
  const std::vector<SegmentBytes> segments = shop.recorder()->sealed_segments();
  const Trace last = Trace::of(segments.back().bytes);
  const std::vector<std::uint64_t> rates = last.stamps("RecorderShedEvent");
  const std::vector<std::uint64_t> orders = last.stamps("Order");
  ASSERT_FALSE(rates.empty());
  ASSERT_FALSE(orders.empty());
  EXPECT_LT(*std::min_element(rates.begin(), rates.end()),
            *std::min_element(orders.begin(), orders.end()));
}

TEST(GovernedRecording, bills_what_it_costs) {
  Shop shop;
  shop.run(3, 1);
  const RecorderStatus status = shop.recorder()->status();
  EXPECT_GT(status.host_cpu_percent, 0);
  EXPECT_GT(status.collector_cpu_percent, 0);
  const Trace trace = shop.recorder().read();
  EXPECT_EQ(trace.count("RecorderBillEvent"), 2U);
  const std::uint64_t orders_a_second = kThreads * kOrdersAStep * kStepsASecond;
  EXPECT_EQ(trace.numbers("RecorderBillEvent", "events")[0],
            orders_a_second + orders_a_second / kOrdersARefund);
  EXPECT_EQ(trace.numbers("RecorderBillEvent", "shed")[0], 0U);
}

constexpr auto kCpuKind = static_cast<std::size_t>(SampleKind::kCpu);

// Takes a tenth of a second of the host's CPU time each time it is looked at, however far it is
// thinned; from then on nothing, since it stays for the process's life.
class DearSource : public StreamSource {
 public:
  std::uint64_t attend(std::uint64_t) override {
    cost_ns_ += is_dear_ ? kTestSecond / 10 : 0;
    return ~std::uint64_t{0};
  }
  void rest() override {}
  std::vector<SourceStream> take() override { return {}; }
  std::uint64_t host_cost_ns() const override { return cost_ns_; }
  bool thin(std::uint32_t one_in) override {
    one_in_ = one_in;
    return true;
  }
  void set_budget(const GovernorBudget& budget) override { max_cpu_ns_ = budget.max_cpu_ns; }
  std::uint64_t metadata_version() const override { return 0; }
  Metadata metadata() const override { return {}; }

  bool is_dear_ = true;
  std::uint64_t cost_ns_ = 0;
  std::uint32_t one_in_ = 0;
  double max_cpu_ns_ = -1;
};

TEST(GovernedRecording,
     thins_samples_that_take_more_than_the_budget_and_says_where_that_is_too_little) {
  static DearSource source;
  ASSERT_TRUE(add_stream_source(&source));
  {
    RecorderOptions options = RecorderOptions::memory(kTestBudget);
    options.max_cpu_percent = 1;
    SteppedRecorder recorder(options);
    recorder.step();
    EXPECT_EQ(source.one_in_, 1U);
    EXPECT_EQ(source.max_cpu_ns_, 1e7);
    for (int i = 0; i < 20; ++i) {
      recorder.advance(kTestSecond / 10);
      recorder.step();
    }
    EXPECT_EQ(source.one_in_, kMostSamplesOneIn[kCpuKind]);
    EXPECT_TRUE(recorder->status().is_over_budget);
    source.is_dear_ = false;
  }
  // The next recorder, which has no budget, takes all of them again.
  SteppedRecorder recorder;
  recorder.step();
  EXPECT_EQ(source.one_in_, 1U);
  EXPECT_EQ(source.max_cpu_ns_, 0);
}

TEST(GovernedRecording, refuses_a_budget_that_is_none) {
  RecorderOptions options = RecorderOptions::memory(kTestBudget);
  options.max_cpu_percent = -1;
  Status status;
  EXPECT_EQ(RecorderCore::start(options, {}, &status), nullptr);
  EXPECT_NE(status.message().find("max_cpu_percent"), std::string::npos);
}

}  // namespace
}  // namespace dial9::internal
