// HTTP as the rest of the server sees it: a request, a response, and a server that calls one
// handler. Nothing here names the library below: Beast costs 50 s to compile, so only
// http_beast.cc sees it. What comes in is bounded (header, body, connections, time), what goes
// out is a finished body.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace dial9::server {

enum class Method : std::uint8_t { kGet, kHead, kPost, kOther };

using Pairs = std::vector<std::pair<std::string, std::string>>;

// One request, headers reduced to those that matter here.
struct Request {
  Method method = Method::kGet;
  std::string target;  // as sent: path and query, still percent-encoded
  std::string host;
  std::string origin;         // empty: none was sent
  std::string authorization;  // the whole value, e.g. "Bearer abc"
  std::string if_none_match;
  bool accepts_gzip = false;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string_view static_body;  // sent instead of `body` where not empty; outlives the server
  bool is_gzipped = false;       // the body is gzip already
  bool is_cacheable = false;     // for ever: its address contains a hash of its content
  std::string etag;              // with its quotes; empty: none
  Pairs headers;                 // further ones
};

// Called on a pool thread, several at once. A throw becomes a 500.
using Handler = std::function<Response(const Request&)>;

struct HttpOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: the system picks one
  unsigned threads = 2;    // that run handlers, at least 1
  // One more takes the place of the connection that has waited for a request the longest, of the
  // address that has the most of them; where none waits, or only addresses with fewer connections
  // than the newcomer's own, it is answered with 503 and closed.
  std::size_t max_connections = 256;
  unsigned request_timeout_s = 10;  // for a request to come in whole; of a new connection at once
  unsigned idle_timeout_s = 60;     // for one reply, and between requests
  unsigned look_period_ms = 500;    // how often connections whose time is over are looked for
  std::function<std::uint64_t()> now_ns;  // of these times; empty: the steady clock
  bool stops_on_signals = false;          // SIGINT and SIGTERM end run()
};

// Bound and listening from listen() on; serves while some thread is in run().
class HttpServer {
 public:
  // Errors: kInvalidArgument (not an IP address), kAlreadyExists (port in use), kPermission, kIo.
  static Result<std::unique_ptr<HttpServer>> listen(HttpOptions options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;  // the real one
  // Blocks until stop() or a signal (see HttpOptions); then every connection is closed and no
  // handler runs any more.
  Result<void> run();
  // Any thread, also before run() and more than once.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// True for 127.0.0.0/8, ::1 and the IPv4-mapped forms; `address` is a literal.
bool is_loopback_address(std::string_view address);

// {"error": {"code": …, "message": …}} with this status; the message names the cure.
Response error_response(unsigned status, std::string_view code, std::string_view message);

}  // namespace dial9::server
