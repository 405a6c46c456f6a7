// checkout: the example service. Workers run one io_context; the main thread only waits for a
// signal and then takes everything down in order: no new clients, busy ones finish (up to
// --drain-ms), workers end, the audit log is written out. Prints its port once it listens.
// Exit: 0 after SIGTERM or SIGINT, 1 if it can't start, 2 wrong usage.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "audit_log.h"
#include "counters.h"
#include "faults.h"
#include "http_server.h"
#include "kv_pool.h"
#include "descriptor_limit.h"
#include "options.h"
#include "service.h"

namespace asio = boost::asio;
using boost::system::error_code;

namespace checkout {
namespace {

// Waits for SIGTERM or SIGINT, then for the server to drain, at most `drain_limit` or until a second
// signal. On a context of its own: it must be heard however long the workers' queue is.
void wait_for_the_end(asio::io_context& control, HttpServer& server,
                      std::chrono::milliseconds drain_limit) {
  asio::signal_set signals(control, SIGTERM, SIGINT);
  asio::steady_timer limit(control);
  signals.async_wait([&](error_code, int) {
    std::fprintf(stderr, "checkout: shutting down\n");
    server.shut_down([&control] { control.stop(); });
    limit.expires_after(drain_limit);
    limit.async_wait([&control](error_code error) {
      if (!error) control.stop();
    });
    signals.async_wait([&control](error_code, int) { control.stop(); });
  });
  control.run();
}

std::vector<std::thread> start_workers(asio::io_context& io, unsigned count) {
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < count; ++i) {
    workers.emplace_back([&io] { io.run(); });
    pthread_setname_np(workers.back().native_handle(), ("worker-" + std::to_string(i)).c_str());
  }
  return workers;
}

void run(const Options& options) {
  raise_descriptor_limit();
  asio::io_context control(1);
  asio::io_context io(static_cast<int>(options.workers));
  const auto work = asio::make_work_guard(io);
  const asio::ip::tcp::endpoint store(asio::ip::make_address(options.kv_address),
                                      options.kv_port);

  const auto counters = std::make_shared<Counters>();
  const auto faults = std::make_shared<Faults>(io, options.faults, options.workers, store);
  KvPoolOptions pool_options;
  pool_options.store = store;
  pool_options.connections = options.kv_connections;
  const auto pool = std::make_shared<KvPool>(io, pool_options, counters);
  const auto audit = std::make_shared<AuditLog>(options.audit_path, options.is_audit_synced);
  const auto service = std::make_shared<Service>(pool, audit, faults, counters);
  HttpOptions http;
  http.address = options.address;
  http.port = options.port;
  http.max_connections = options.max_connections;
  HttpServer server(
      io, http,
      [service](HttpRequest request) { return service->handle(std::move(request)); }, counters);

  server.start();
  faults->start();
  std::vector<std::thread> workers = start_workers(io, options.workers);
  std::printf("checkout: listening on %s:%u\n", options.address.c_str(),
              static_cast<unsigned>(server.port()));
  std::fflush(stdout);

  wait_for_the_end(control, server, std::chrono::milliseconds(options.drain_ms));
  io.stop();
  for (std::thread& worker : workers) worker.join();
  faults->stop();
  std::fprintf(stderr, "checkout: stopped after %llu orders\n",
               static_cast<unsigned long long>(counters->orders.load()));
}

}  // namespace
}  // namespace checkout

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto options = checkout::parse_options(argc, argv, &exit_code);
  if (!options) return exit_code;
  try {
    checkout::run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkout: %s\n", error.what());
    return 1;
  }
  return 0;
}
