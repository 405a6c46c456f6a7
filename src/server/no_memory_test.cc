// A server whose process may take no more memory: it answers, lives on, and serves again.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/testing/cpu_trace.h"
#include "base/unique_fd.h"
#include "server/http.h"
#include "server/memory_reserve.h"
#include "server/routes.h"
#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

// One after the other, and the last is of 64 bytes.
struct Block {
  Block* next;
};
Block* g_held = nullptr;

// All that operator new gives, whoever asks.
void eat_all() {
  for (std::size_t bytes = std::size_t{1} << 24; bytes >= 64;) {
    void* const memory = std::malloc(bytes);  // no new-handler: the reserve stays
    if (memory == nullptr) {
      bytes /= 2;
      continue;
    }
    g_held = new (memory) Block{g_held};
  }
}

void free_all() {
  while (g_held != nullptr) std::free(std::exchange(g_held, g_held->next));
}

std::uint64_t address_space_bytes() {
  unsigned long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) ::_exit(10);
  std::fclose(file);
  return std::uint64_t{pages} * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void bound_addresses(std::uint64_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0) ::_exit(15);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(16);
}

// Of what the allocator could give, so many bytes are left from now on.
void leave(std::uint64_t bytes) {
  const std::uint64_t now = address_space_bytes();
  bound_addresses(now);
  eat_all();  // what it holds, which may be much of other tests
  bound_addresses(now + bytes);
}

// Samples in many functions.
testing::Bytes sampled() {
  analysis::testing::CpuTrace made;
  for (std::uint64_t i = 0; i < 4'000; ++i) {
    made.add({.at_ns = testing::kOriginNs + i * 10'000,
              .frames = {0x1000 + i % 1'999, 0x9000 + i % 97, 0xf000}});
  }
  return made.builder.take();
}

// Of runs "a", "b" and "s". Made once, in the child.
const Service& service() {
  static RunStore* const store = [] {
    auto source = std::make_unique<testing::MemoryRuns>();
    source->add("a", testing::dense_trace(20'000));
    source->add("b", testing::dense_trace(40'000));
    source->add("s", sampled());
    return new RunStore(std::move(source), StoreOptions{});
  }();
  static const Service* const service =
      new Service(AccessRules{}, *store, std::span<const Asset>{});
  return *service;
}

Response answer(const Request& request) {
  constexpr std::string_view kLeave = "/leave/";
  if (request.target.starts_with("/api/")) return service().handle(request);
  if (request.target.starts_with(kLeave)) {
    leave(std::strtoull(request.target.c_str() + kLeave.size(), nullptr, 10));
    return {};
  }
  if (request.target == "/eat") eat_all();
  if (request.target == "/free") {
    bound_addresses(RLIM_INFINITY);
    free_all();
  }
  if (request.target == "/used") {
    const struct mallinfo2 facts = ::mallinfo2();
    Response out;
    out.body = std::to_string(facts.uordblks + facts.hblkhd);
    return out;
  }
  const std::string work(std::size_t{24} << 20, '.');  // more than all of the reserve
  Response out;
  out.body = work.substr(0, 100);
  return out;
}

// Tells its port, and serves until the other end of `out` is closed.
[[noreturn]] void serve_in_little(int out) {
  ::mallopt(M_ARENA_MAX, 1);  // all threads find what it leaves
  HttpOptions options;
  options.threads = 1;
  auto server = HttpServer::listen(options, answer);
  if (!server) ::_exit(11);
  std::thread watch([&] {
    const std::uint16_t port = (*server)->port();
    char ignored;
    if (::write(out, &port, sizeof port) != sizeof port) ::_exit(12);
    while (::read(out, &ignored, 1) > 0) {
    }
    (*server)->stop();
  });
  const rlim_t most = address_space_bytes() + (std::uint64_t{96} << 20);
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(13);
  const auto served = (*server)->run();
  watch.join();
  ::_exit(served ? 0 : 14);
}

class NoMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED)
    GTEST_SKIP() << "a sanitizer needs its address space";
#endif
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    UniqueFd theirs(ends[1]);
    ours_.reset(ends[0]);
    child_ = ::fork();
    if (child_ == 0) {
      ours_.reset();
      serve_in_little(theirs.get());
    }
    theirs.reset();
    ASSERT_EQ(::read(ours_.get(), &port_, sizeof port_), static_cast<ssize_t>(sizeof port_));
  }
  // It ends by itself, and well.
  void TearDown() override {
    if (child_ <= 0) return;
    ours_.reset();
    int status = 0;
    ASSERT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
  }

  // A connection of its own, with the request on its way.
  UniqueFd ask(const std::string& target, const char* method = "GET ") const {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket.get(), to, sizeof address), 0);
    const std::string request =
        method + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    return socket;
  }
  // The whole reply; empty: none.
  static std::string reply_on(const UniqueFd& socket) {
    std::string reply;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;) {
      reply.append(buffer, static_cast<std::size_t>(got));
    }
    return reply;
  }
  std::string get(const std::string& target) const { return reply_on(ask(target)); }
  std::string post(const std::string& target) const { return reply_on(ask(target, "POST ")); }
  // Until it is loaded, or can't be.
  void wait_for(const std::string& run) const {
    while (get("/api/v1/runs/" + run).find("loading") != std::string::npos) {
    }
  }
  std::int64_t used() const {
    const std::string reply = get("/used");
    return std::strtoll(reply.c_str() + reply.find("\r\n\r\n"), nullptr, 10);
  }

 private:
  UniqueFd ours_;
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

bool is_busy(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 503 ") && reply.find("out of memory") != std::string::npos;
}

TEST_F(NoMemory, IsToldToEachRequestAndTheServerLivesOn) {
  ASSERT_TRUE(get("/a").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(is_busy(get("/eat")));
  for (int i = 0; i < 100; ++i) {
    const std::string reply = get("/a");
    ASSERT_TRUE(is_busy(reply)) << i << ": " << reply.substr(0, 400);
  }
  std::vector<UniqueFd> crowd;  // more than what the server has at hand from earlier requests
  for (int i = 0; i < 100; ++i) crowd.push_back(ask("/a"));
  for (const UniqueFd& one : crowd) {
    const std::string reply = reply_on(one);
    ASSERT_TRUE(is_busy(reply)) << reply.substr(0, 400);
  }
  EXPECT_TRUE(get("/free").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(get("/a").starts_with("HTTP/1.1 200 "));
}

// Of each kind of request, and of loads.
TEST_F(NoMemory, ThatManyRequestsRanOutOfIsGivenBack) {
  const std::string window = "?t0=0&bin=1e5&bins=2000";
  std::vector<std::string> targets;
  for (const std::string& rest :
       {std::string(), std::string("/summary"), std::string("/findings"), "/lanes" + window,
        "/spans" + window, "/queues" + window, std::string("/minimap?bins=2000"),
        std::string("/tasks/7?limit=1000"), std::string("/search?q=7&limit=500"),
        std::string("/polls/3")}) {
    targets.push_back("/api/v1/runs/a" + rest);
  }
  for (const std::string rest : {"/flame", "/flame?inverted=1", "/samples/7", "/flame/diff"}) {
    targets.push_back("/api/v1/runs/s" + rest);
  }
  for (const std::string run : {"a", "s"}) {
    post("/api/v1/runs/" + run + "/open");
    wait_for(run);
  }
  std::vector<std::string> right;
  for (const std::string& target : targets) {
    right.push_back(get(target));
    ASSERT_TRUE(right.back().starts_with("HTTP/1.1 200 ")) << target << right.back();
  }
  std::int64_t used_at_first = 0;
  int refused = 0;
  int failed = 0;  // loads
  for (int round = 0; round < 26; ++round) {
    const std::size_t left = std::size_t{1} << (10 + round % 13);
    get("/leave/" + std::to_string(left));
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::string reply = get(targets[i]);
      EXPECT_TRUE(is_busy(reply) || reply == right[i]) << targets[i] << reply.substr(0, 500);
      refused += is_busy(reply) ? 1 : 0;
    }
    // Its load ends before there is memory again, but for where it can't be known.
    if (!is_busy(post("/api/v1/runs/b/open"))) wait_for("b");
    failed += get("/api/v1/runs/b").find("failed") != std::string::npos ? 1 : 0;
    ASSERT_TRUE(get("/free").starts_with("HTTP/1.1 200 "));
    wait_for("b");
    post("/api/v1/runs/b/close");
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_TRUE(get(targets[i]) == right[i]) << round << targets[i];
    }
    if (round == 12) used_at_first = used();
  }
  EXPECT_GT(refused, 26);
  EXPECT_GT(failed, 6);
  EXPECT_LT(used() - used_at_first, 64 << 10) << used_at_first;
}

TEST(MemoryReserve, GivesToAllButToRequests) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "a sanitizer has its own operator new";
#endif
  const MemoryReserve reserve;
  const auto is_given = [] {
    try {
      std::get_new_handler()();
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  EXPECT_TRUE(is_given());
  {
    const MemoryReserve::Request request;
    EXPECT_FALSE(is_given());
  }
  int pieces = 1;
  while (is_given()) ++pieces;
  EXPECT_GT(pieces, 8);
  MemoryReserve::refill();
  int again = 0;
  while (is_given()) ++again;
  EXPECT_EQ(again, pieces);
}

}  // namespace
}  // namespace dial9::server
