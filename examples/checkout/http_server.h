// A small HTTP/1.1 server on a pool of workers: keep-alive, limits, time-outs, graceful shutdown.
// The only file that knows Boost.Beast is http_server.cc, since Beast costs a minute to compile;
// this header has plain types. Each connection is one task ("session") on a strand of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "counters.h"

namespace checkout {

struct HttpRequest {
  std::string method;
  std::string target;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

// Answers one request; an exception out of it becomes a 500. Called on the connection's strand.
using HttpHandler = std::function<boost::asio::awaitable<HttpResponse>(HttpRequest)>;

struct HttpOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  std::size_t max_connections = 10000;
  std::uint32_t max_head_bytes = 8 * 1024;
  std::uint64_t max_body_bytes = 64 * 1024;
  std::chrono::milliseconds idle_limit{60000};    // a kept connection without a request
  std::chrono::milliseconds request_limit{5000};  // from a request's first byte to its last
  std::chrono::milliseconds write_limit{5000};    // for a response to leave
};

class HttpServer {
 public:
  // Binds and listens; throws boost::system::system_error if that fails. Nothing is accepted yet.
  HttpServer(boost::asio::io_context& io, HttpOptions options, HttpHandler handler,
             std::shared_ptr<Counters> counters);
  ~HttpServer();

  std::uint16_t port() const;
  void start();

  // Stops accepting, ends idle connections now and busy ones after their response. `on_drained` is
  // called once on a worker as the last connection ends. Any thread, once.
  void shut_down(std::function<void()> on_drained);

 private:
  friend class Session;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace checkout
