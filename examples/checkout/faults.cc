// The faults of the checkout service, each in one function or one small class.
// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <dial9/asio.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <utility>

#include "descriptor_limit.h"
#include "tasks.h"

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace checkout {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

constexpr unsigned kLongHandlerEvery = 16;
constexpr microseconds kLongHandlerTime{20000};
constexpr unsigned kBlockingReadEvery = 8;
constexpr milliseconds kFileDelay{15};
constexpr microseconds kMutexTime{4000};
constexpr microseconds kStrandTime{5000};
constexpr std::size_t kStormPools = 8;
constexpr std::size_t kStormConnections = 1200;  // of each pool
constexpr milliseconds kStormHold{1000};
constexpr unsigned kBusyThreadsPerCore = 6;
constexpr unsigned kHops = 30;
constexpr std::size_t kHopLoops = 3;
constexpr microseconds kHopTime{20};
constexpr microseconds kJobTime{2000};
constexpr double kJobOverload = 1.5;  // jobs posted for each that can be served
constexpr milliseconds kJobTick{10};

std::chrono::nanoseconds thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Computes for `cpu_time` of the calling thread's own CPU clock, so that a fault is as long on a
// busy machine as on a quiet one. Never waits.
void burn(microseconds cpu_time) {
  const auto end = thread_cpu_time() + cpu_time;
  volatile std::uint64_t hash = 14695981039346656037U;
  do {
    for (int i = 0; i < 2000; ++i) hash = (hash ^ static_cast<std::uint64_t>(i)) * 1099511628211U;
  } while (thread_cpu_time() < end);
}

unsigned cores() { return std::max(1U, std::thread::hardware_concurrency()); }

// Resumes the calling coroutine on `executor`.
template <class Executor>
auto move_to(const Executor& executor) {
  return asio::post(asio::bind_executor(executor, asio::use_awaitable));
}

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe");
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // One byte, blocking. False at the end of the stream.
  bool read() {
    char byte = 0;
    ssize_t count = 0;
    do {
      count = ::read(ends_[0], &byte, 1);
    } while (count < 0 && errno == EINTR);
    return count == 1;
  }
  bool write() { return ::write(ends_[1], "x", 1) == 1; }
  void close_writer() { close_end(1); }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }
  std::array<int, 2> ends_{-1, -1};
};

}  // namespace

// A file whose content comes kFileDelay late, from a thread that stands for the slow device.
class LateFile {
 public:
  LateFile() : device_([this] { feed(); }) {}
  ~LateFile() {
    asked_.close_writer();
    device_.join();
  }
  void read() {
    if (asked_.write()) answered_.read();
  }

 private:
  void feed() {
    while (asked_.read()) {
      std::this_thread::sleep_for(kFileDelay);
      if (!answered_.write()) return;
    }
  }
  Pipe asked_;
  Pipe answered_;
  std::thread device_;
};

// Single-threaded contexts, each with its thread: the homes that hopping sends a task through.
class HopLoops {
 public:
  HopLoops() {
    for (Loop& loop : loops_) {
      dial9::asio::name_context(loop.io, "hop");
      loop.thread = std::thread([&loop] { dial9::asio::run(loop.io); });
    }
  }
  ~HopLoops() {
    for (Loop& loop : loops_) loop.io.stop();
    for (Loop& loop : loops_) loop.thread.join();
  }
  auto executor(unsigned hop) { return loops_[hop % kHopLoops].io.get_executor(); }

 private:
  struct Loop {
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
    std::thread thread;
  };
  std::array<Loop, kHopLoops> loops_;
};

Faults::Faults(asio::io_context& io, FaultSet faults, unsigned workers, tcp::endpoint store)
    : io_(io),
      faults_(faults),
      workers_(workers),
      store_(std::move(store)),
      strand_(asio::make_strand(io)) {}

Faults::~Faults() { stop(); }

void Faults::start() {
  if (faults_.has(Fault::kBlockingRead)) late_file_ = std::make_unique<LateFile>();
  if (faults_.has(Fault::kHopping)) hops_ = std::make_unique<HopLoops>();
  if (faults_.has(Fault::kConnectStorm)) {
    for (std::size_t i = 0; i < kStormPools; ++i) {
      spawn(io_.get_executor(), "pool-filler", connect_storm());
    }
  }
  if (faults_.has(Fault::kOversubscribed)) {
    for (unsigned i = 0; i < kBusyThreadsPerCore * cores(); ++i) {
      threads_.emplace_back([this] {
        while (!is_stopping_.load(std::memory_order_relaxed)) burn(microseconds(1000));
      });
    }
  }
}

void Faults::stop() {
  is_stopping_.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  late_file_.reset();
  hops_.reset();
}

asio::awaitable<void> Faults::at_request() {
  if (faults_.empty()) co_return;
  const std::uint64_t number = requests_.fetch_add(1, std::memory_order_relaxed);
  const auto home = co_await asio::this_coro::executor;
  if (faults_.has(Fault::kGrowingQueue) && number == 0) {
    threads_.emplace_back([this] { produce_jobs(); });
  }
  if (faults_.has(Fault::kLongHandler) && number % kLongHandlerEvery == 0) burn(kLongHandlerTime);
  if (faults_.has(Fault::kBlockingRead) && number % kBlockingReadEvery == 0) late_file_->read();
  if (faults_.has(Fault::kHotMutex)) {
    const std::lock_guard lock(price_table_);
    burn(kMutexTime);
  }
  if (faults_.has(Fault::kTaskLeak)) {
    spawn(io_.get_executor(), "price-watcher", wait_for_ever());
  }
  if (faults_.has(Fault::kOneStrand)) {
    co_await move_to(strand_);
    burn(kStrandTime);
    co_await move_to(home);
  }
  if (faults_.has(Fault::kHopping)) {
    co_await dial9::asio::co_spawn(home, "quote", hop_around(), asio::use_awaitable);
  }
}

asio::awaitable<void> Faults::hop_around() {
  const auto home = co_await asio::this_coro::executor;
  for (unsigned hop = 0; hop < kHops; ++hop) {
    co_await move_to(hops_->executor(hop));
    burn(kHopTime);
  }
  co_await move_to(home);
}

// One pool's connections, started in one go as a naive pool would. Those that fail are simply
// missing: the storm is in the attempts.
asio::awaitable<void> Faults::connect_storm() {
  const auto self = shared_from_this();
  const std::size_t count =
      std::min(kStormConnections, raise_descriptor_limit() / (2 * kStormPools));
  std::vector<tcp::socket> sockets;
  sockets.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    sockets.emplace_back(io_);
    sockets.back().async_connect(store_, [self](error_code) {});
  }
  asio::steady_timer hold(io_, kStormHold);
  co_await hold.async_wait(kToken);
}

// A thread of its own, as a consumer of a message queue has: it doesn't notice how late its jobs
// are.
void Faults::produce_jobs() {
  const double servers = std::min(workers_, cores());
  const double jobs_per_us = kJobOverload * servers / static_cast<double>(kJobTime.count());
  const auto start = std::chrono::steady_clock::now();
  double posted = 0;
  while (!is_stopping_.load(std::memory_order_relaxed)) {
    const auto elapsed = std::chrono::steady_clock::now() - start;
    const double due = std::chrono::duration<double, std::micro>(elapsed).count() * jobs_per_us;
    for (; posted < due; ++posted) {
      asio::post(io_, [] { burn(kJobTime); });
    }
    std::this_thread::sleep_for(kJobTick);
  }
}

asio::awaitable<void> Faults::wait_for_ever() {
  asio::steady_timer answer(io_, std::chrono::steady_clock::time_point::max());
  co_await answer.async_wait(kToken);
}

}  // namespace checkout
