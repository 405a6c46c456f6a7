// Starting, driving and reading the recorded service; see the header.
// SPDX-License-Identifier: Apache-2.0
#include "service_run.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace dial9::testing {
namespace {

std::filesystem::path make_directory() {
  std::string pattern = ::testing::TempDir() + "dial9-integration-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no directory like " << pattern;
  return pattern;
}

// What g++'s and clang's sanitizers begin each report with.
bool has_sanitizer_report(const std::string& text) {
  return text.find("Sanitizer: ") != std::string::npos ||
         text.find(": runtime error: ") != std::string::npos;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

Connection::Connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* const target = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd_, target, sizeof address) != 0) ADD_FAILURE() << "no connection to " << port;
}

Connection::~Connection() { ::close(fd_); }

bool Connection::send(const std::string& text) {
  return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string Connection::receive(const std::string& end) {
  std::string answer;
  std::array<char, 4096> bytes{};
  while (end.empty() || !answer.ends_with(end)) {
    const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    answer.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return answer;
}

ServiceRun::ServiceRun() : directory_(make_directory()) {}

ServiceRun::~ServiceRun() {
  service_.reset();
  store_.reset();
  // Also of a process that was killed, or whose exit code nobody asked for.
  EXPECT_FALSE(has_sanitizer_report(log()));
  if (::testing::Test::HasFailure()) {
    std::fprintf(stderr, "kept %s\n%s", directory_.c_str(), log().c_str());
    return;
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string ServiceRun::log() const {
  std::ifstream file(path("stderr.txt"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::uint16_t ServiceRun::read_port(ChildProcess& process) {
  const auto line = process.read_line();
  const std::size_t colon = line ? line->rfind(':') : std::string::npos;
  if (colon == std::string::npos) {
    ADD_FAILURE() << "no port was printed: " << process.wait().text() << '\n' << log();
    return 0;
  }
  return static_cast<std::uint16_t>(std::stoul(line->substr(colon + 1)));
}

void ServiceRun::start(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment) {
  store_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{DIAL9_CHECKOUT_KV, "--port", "0"}, path("stderr.txt"));
  const std::uint16_t store_port = read_port(*store_);
  std::vector<std::string> command{
      DIAL9_CHECKOUT, "--port",           "0", "--kv-port", std::to_string(store_port),
      "--audit",      path("audit.jsonl")};
  append(command, arguments);
  service_ = std::make_unique<ChildProcess>(command, path("stderr.txt"), environment);
  port_ = read_port(*service_);
}

nlohmann::json ServiceRun::load(const LoadOptions& options) {
#ifdef DIAL9_SANITIZED
  constexpr unsigned kSlowdown = 20;  // of a service in which every access is checked
#else
  constexpr unsigned kSlowdown = 1;
#endif
  const Finished finished = run_program(
      {DIAL9_CHECKOUT_LOAD, "--json", "--port", std::to_string(port_), "--rate",
       std::to_string(options.rate_hz), "--duration", std::to_string(options.duration_s),
       "--connections", std::to_string(options.connections), "--timeout-ms",
       std::to_string(options.timeout_ms * kSlowdown)},
      path("stderr.txt"));
  auto report = nlohmann::json::parse(finished.output, nullptr, false);
  EXPECT_TRUE(report.is_object()) << finished.status.text() << '\n' << log();
  return report;
}

KernelTimes ServiceRun::kernel_times() const {
  KernelTimes times;
  times.passed_ns = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  const std::string tasks = "/proc/" + std::to_string(service_->pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0;
    std::ifstream(task.path() / "schedstat") >> ran_ns >> waited_ns;
    times.ran_ns += ran_ns;
    times.waited_ns += waited_ns;
  }
  EXPECT_GT(times.ran_ns, 0U);
  return times;
}

void ServiceRun::stop() {
  service_->send_signal(SIGTERM);
  const ExitStatus status = service_->wait();
  EXPECT_TRUE(status.ok()) << "service: " << status.text() << '\n' << log();
}

void ServiceRun::kill() {
  service_->send_signal(SIGKILL);
  EXPECT_EQ(service_->wait().signal, SIGKILL);
}

std::string ServiceRun::http(const std::string& text) const {
  Connection connection(port_);
  return connection.send(text) ? connection.receive() : std::string();
}

std::string ServiceRun::dial9(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{DIAL9_CLI};
  append(command, arguments);
  Finished finished = run_program(command, path("stderr.txt"));
  EXPECT_TRUE(finished.status.ok())
      << "dial9 " << arguments.front() << ": " << finished.status.text() << '\n'
      << log();
  return std::move(finished.output);
}

nlohmann::json ServiceRun::dial9_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const std::string output = dial9(arguments);
  auto json = nlohmann::json::parse(output, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << output;
  return json;
}

}  // namespace dial9::testing
