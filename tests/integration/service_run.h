// The checkout service in a test: starts the store and the service on free ports in a directory of
// its own, sends requests or load, stops it, and reads the recording with the `dial9` command as a
// user would. Removes its directory at the end unless the test has failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "child_process.h"

namespace dial9::testing {

struct LoadOptions {
  double rate_hz = 120;
  double duration_s = 2;
  unsigned connections = 32;
  unsigned timeout_ms = 1000;  // of a request
};

// What the kernel says of a process's living threads: how long they ran, and how long they were
// runnable and had no CPU.
struct KernelTimes {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t passed_ns = 0;  // on the monotonic clock

  KernelTimes operator-(const KernelTimes& before) const {
    return {ran_ns - before.ran_ns, waited_ns - before.waited_ns, passed_ns - before.passed_ns};
  }
  // Of the time that they could have run.
  double share_waited() const {
    const auto all_ns = static_cast<double>(ran_ns + waited_ns);
    return all_ns == 0 ? 0 : static_cast<double>(waited_ns) / all_ns;
  }
};

// A client's connection.
class Connection {
 public:
  explicit Connection(std::uint16_t port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool send(const std::string& text);
  // Receives until what came ends with `end`, or to the end of the stream.
  std::string receive(const std::string& end = {});

 private:
  int fd_ = -1;
};

class ServiceRun {
 public:
  ServiceRun();
  ~ServiceRun();
  ServiceRun(const ServiceRun&) = delete;
  ServiceRun& operator=(const ServiceRun&) = delete;

  const std::filesystem::path& directory() const { return directory_; }
  std::string path(const std::string& name) const { return directory_ / name; }

  // Starts both processes; `arguments` are added to the service's command line. A failure is a test
  // failure, with what it said.
  void start(const std::vector<std::string>& arguments,
             const std::vector<std::string>& environment = {});
  std::uint16_t port() const { return port_; }
  ChildProcess& service() { return *service_; }
  ChildProcess& store() { return *store_; }

  // Runs the load generator to its end; its JSON report.
  nlohmann::json load(const LoadOptions& options);

  // The service's.
  KernelTimes kernel_times() const;

  // SIGTERM; the service must end by itself with exit code 0.
  void stop();
  void kill();

  // Sends `text` on a connection of its own and returns all that comes until the service closes.
  std::string http(const std::string& text) const;

  // `dial9 VERB arguments...`, which must succeed; its standard output.
  std::string dial9(const std::vector<std::string>& arguments);
  nlohmann::json dial9_json(std::vector<std::string> arguments);

  // What all processes wrote to standard error.
  std::string log() const;

 private:
  std::uint16_t read_port(ChildProcess& process);

  std::filesystem::path directory_;
  std::unique_ptr<ChildProcess> store_;
  std::unique_ptr<ChildProcess> service_;
  std::uint16_t port_ = 0;
};

}  // namespace dial9::testing
