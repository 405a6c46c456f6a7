// checkout_kv: the checkout service's key-value store, a process of its own. One thread, one
// coroutine a connection, the line protocol of kv_protocol.h. Prints its port on stdout once it
// listens; ends on SIGTERM or SIGINT with exit code 0. It is not recorded.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "descriptor_limit.h"
#include "kv_protocol.h"
#include "kv_store.h"

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace checkout::kv {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr auto kAcceptBackoff = std::chrono::milliseconds(100);

// Answers every whole request in `input` and removes it. False: the client can't be understood.
bool answer_all(Store& store, std::string& input, std::string& output) {
  std::size_t used = 0;
  bool is_good = true;
  for (;;) {
    const auto parsed = parse_request(std::string_view(input).substr(used));
    if (parsed.status == ParseStatus::kNeedMore) break;
    if (parsed.status == ParseStatus::kBad) {
      output += encode(Reply{ReplyKind::kError, parsed.error, 0});
      is_good = false;
      break;
    }
    used += parsed.consumed;
    output += encode(store.apply(parsed.message));
  }
  input.erase(0, used);
  return is_good;
}

asio::awaitable<void> serve(tcp::socket socket, Store& store) {
  std::string input;
  std::string output;
  for (;;) {
    const std::size_t have = input.size();
    input.resize(have + kReadBytes);
    const auto [read_error, count] =
        co_await socket.async_read_some(asio::buffer(input.data() + have, kReadBytes), kToken);
    if (read_error) co_return;
    input.resize(have + count);
    output.clear();
    const bool is_good = answer_all(store, input, output);
    if (output.empty()) continue;
    const auto [write_error, written] =
        co_await asio::async_write(socket, asio::buffer(output), kToken);
    if (write_error || !is_good) co_return;
  }
}

asio::awaitable<void> listen(tcp::acceptor& acceptor, Store& store) {
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(kToken);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // most often no descriptor is left: let some end
      asio::steady_timer pause(acceptor.get_executor(), kAcceptBackoff);
      co_await pause.async_wait(kToken);
      continue;
    }
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), store), asio::detached);
  }
}

int run(const std::string& address, std::uint16_t port, std::size_t budget_bytes) {
  asio::io_context io(1);
  Store store(budget_bytes);
  tcp::acceptor acceptor(io, {asio::ip::make_address(address), port});
  acceptor.listen(4096);
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](error_code error, int) {
    if (!error) io.stop();
  });
  asio::co_spawn(io, listen(acceptor, store), asio::detached);
  std::printf("checkout_kv: listening on %s:%u\n", address.c_str(),
              static_cast<unsigned>(acceptor.local_endpoint().port()));
  std::fflush(stdout);
  io.run();
  return 0;
}

}  // namespace
}  // namespace checkout::kv

int main(int argc, char** argv) {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  std::size_t budget_mib = 256;
  CLI::App app{"The checkout service's key-value store", "checkout_kv"};
  app.add_option("--address", address, "Address to listen on")->capture_default_str();
  app.add_option("--port", port, "Port to listen on; 0: any free one, printed")
      ->capture_default_str();
  app.add_option("--budget-mib", budget_mib, "Most memory for keys and values, MiB")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    checkout::raise_descriptor_limit();
    return checkout::kv::run(address, port, budget_mib << 20);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkout_kv: %s\n", error.what());
    return 1;
  }
}
