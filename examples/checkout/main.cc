// checkout: the example service. Workers run one io_context; the main thread only waits for a
// signal and then takes everything down in order: no new clients, busy ones finish (up to
// --drain-ms), workers end, the audit log is written out. Prints its port once it listens.
// Exit: 0 after SIGTERM or SIGINT, 1 if it can't start, 2 wrong usage.
// SPDX-License-Identifier: Apache-2.0
#include <dial9/asio.h>
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
#include "descriptor_limit.h"
#include "faults.h"
#include "http_server.h"
#include "kv_pool.h"
#include "options.h"
#include "recording.h"
#include "service.h"

namespace asio = boost::asio;
using boost::system::error_code;

namespace checkout {
namespace {

// The main thread's work, on a context of its own: signals must be heard however long the workers'
// queue is. Returns after SIGTERM or SIGINT, once the server has drained, at most `drain_limit`
// later, or at a second signal. SIGUSR1 dumps the memory ring.
class Control {
 public:
  // `io` must outlive all sessions: the last of them stops it.
  Control(asio::io_context& io, HttpServer& server, Recording& recording, const Options& options)
      : io_(io), server_(server), recording_(recording), options_(options) {}

  void run() {
    wait_for_dump();
    end_signals_.async_wait([this](error_code, int) { shut_down(); });
    dial9::asio::run(io_);
  }

 private:
  void wait_for_dump() {
    dump_signals_.async_wait([this](error_code error, int) {
      if (error) return;
      if (recording_.dump(options_.dump_path)) {
        std::printf("checkout: dumped %s\n", options_.dump_path.c_str());
        std::fflush(stdout);
      }
      wait_for_dump();
    });
  }

  void shut_down() {
    std::fprintf(stderr, "checkout: shutting down\n");
    server_.shut_down([&io = io_] { io.stop(); });
    limit_.expires_after(std::chrono::milliseconds(options_.drain_ms));
    limit_.async_wait([this](error_code) { io_.stop(); });
    end_signals_.async_wait([this](error_code, int) { io_.stop(); });
  }

  asio::io_context& io_;
  HttpServer& server_;
  Recording& recording_;
  const Options& options_;
  asio::signal_set end_signals_{io_, SIGTERM, SIGINT};
  asio::signal_set dump_signals_{io_, SIGUSR1};
  asio::steady_timer limit_{io_};
};

std::vector<std::thread> start_workers(asio::io_context& io, unsigned count) {
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < count; ++i) {
    workers.emplace_back([&io] { dial9::asio::run(io); });
    pthread_setname_np(workers.back().native_handle(), ("worker-" + std::to_string(i)).c_str());
  }
  return workers;
}

void run(const Options& options) {
  raise_descriptor_limit();
  asio::io_context control(1);
  Recording recording(options);
  asio::io_context io(static_cast<int>(options.workers));
  dial9::asio::name_context(control, "control");
  dial9::asio::name_context(io, "http");
  const auto work = asio::make_work_guard(io);
  const asio::ip::tcp::endpoint store(asio::ip::make_address(options.kv_address), options.kv_port);

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
      io, http, [service](HttpRequest request) { return service->handle(std::move(request)); },
      counters);

  Control main_thread(control, server, recording, options);  // signals are heard from here on
  server.start();
  faults->start();
  std::vector<std::thread> workers = start_workers(io, options.workers);
  std::printf("checkout: listening on %s:%u\n", options.address.c_str(),
              static_cast<unsigned>(server.port()));
  std::fflush(stdout);

  main_thread.run();
  io.stop();
  for (std::thread& worker : workers) worker.join();
  faults->stop();
  recording.stop();
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
