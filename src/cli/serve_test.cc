// `dial9 serve` as its own process, with a bound on its addresses.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "analysis/testing/trace_builder.h"
#include "base/unique_fd.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

class Serve : public testing::CliTest {
 protected:
  Serve() {
    analysis::testing::TraceBuilder builder;
    for (std::uint64_t i = 0; i < 300'000; ++i) {
      builder.wake(1'000'000 + i * 1'000, i % 100 + 1);
      builder.poll(1'000'100 + i * 1'000, 1'000'500 + i * 1'000, i % 4, i % 100 + 1, "app.cc:3");
    }
    write("a.bin", builder.take());
  }
  ~Serve() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGTERM);
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
  }

  void start(rlim_t most_bytes) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const UniqueFd out(ends[0]);
    UniqueFd theirs(ends[1]);
    const std::string trace = path("a.bin");
    child_ = ::fork();
    if (child_ == 0) {
      const rlimit bound{most_bytes, most_bytes};
      ::dup2(theirs.get(), 1);
      if (::setrlimit(RLIMIT_AS, &bound) == 0) {
        ::execl(DIAL9_CLI, DIAL9_CLI, "serve", "--port", "0", trace.c_str(), nullptr);
      }
      ::_exit(127);
    }
    theirs.reset();
    std::string line;
    for (char c; line.find('\n') == std::string::npos && ::read(out.get(), &c, 1) == 1;) line += c;
    port_ = static_cast<std::uint16_t>(std::atoi(line.c_str() + line.rfind(':') + 1));
    ASSERT_NE(port_, 0) << line;
  }
  // The whole reply.
  std::string ask(const std::string& target, const std::string& method = "GET") const {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket.get(), to, sizeof address), 0);
    const std::string request = method + " /api/v1/runs/a.bin" + target +
                                " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string reply;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;) {
      reply.append(buffer, static_cast<std::size_t>(got));
    }
    return reply;
  }

 private:
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

// The run takes 130 MB at most while it is loaded, less than 110 MB afterwards.
TEST_F(Serve, SharesABoundOnItsAddressesAmongItsThreads) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs its address space";
#endif
  start(rlim_t{200'000} << 10);
  ASSERT_TRUE(ask("/open", "POST").starts_with("HTTP/1.1 200 "));
  std::string status;
  do {
    status = ask("");
  } while (status.find("loading") != std::string::npos);
  ASSERT_NE(status.find("\"ready\""), std::string::npos) << status;
  for (const std::string target :
       {"/summary", "/lanes?t0=0&bin=1e5&bins=4000", "/tasks/7?limit=1000", "/search?q=7"}) {
    for (int i = 0; i < 6; ++i) {  // on each thread that answers
      const std::string reply = ask(target);
      EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 ")) << target << i << reply.substr(0, 500);
    }
  }
}

}  // namespace
}  // namespace dial9::cli
