// The HTTP server over Boost.Beast with coroutines: the only file that includes Beast. One thread
// does the network, a small pool runs the handlers; limits hold before a byte reaches a handler.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
// Asio's own memory is operator new's then, which has the reserve (memory_reserve.h).
#define BOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC
#define BOOST_ASIO_DISABLE_BOOST_ALIGN
#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <exception>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "server/http.h"
#include "server/memory_reserve.h"
#include "server/places.h"

namespace dial9::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kHeaderLimitBytes = 16 * 1024;
constexpr std::uint64_t kBodyLimitBytes = 4 * 1024;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

using Parser = http::request_parser<http::string_body>;
using Message = http::response<http::span_body<const char>>;

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

Request to_request(const http::request<http::string_body>& in) {
  Request out;
  switch (in.method()) {
    case http::verb::get:
      out.method = Method::kGet;
      break;
    case http::verb::head:
      out.method = Method::kHead;
      break;
    case http::verb::post:
      out.method = Method::kPost;
      break;
    default:
      out.method = Method::kOther;
      break;
  }
  out.target = text_of(in.target());
  out.host = text_of(in[http::field::host]);
  out.origin = text_of(in[http::field::origin]);
  out.authorization = text_of(in[http::field::authorization]);
  out.if_none_match = text_of(in[http::field::if_none_match]);
  for (const auto& coding : http::ext_list(in[http::field::accept_encoding])) {
    if (!beast::iequals(coding.first, "gzip")) continue;
    out.accepts_gzip = true;
    for (const auto& parameter : coding.second) {  // "gzip;q=0" refuses it
      if (parameter.first == "q" && parameter.second.find_first_not_of("0.") == std::string::npos) {
        out.accepts_gzip = false;
      }
    }
  }
  return out;
}

void fill_headers(const Response& from, Message& to) {
  to.set(http::field::content_type, from.content_type);
  to.set("X-Content-Type-Options", "nosniff");
  to.set("Referrer-Policy", "no-referrer");
  to.set("Cross-Origin-Resource-Policy", "same-origin");
  to.set(http::field::cache_control,
         from.is_cacheable ? "public, max-age=31536000, immutable" : "no-cache");
  to.set(http::field::vary, "Accept-Encoding");
  if (!from.etag.empty()) to.set(http::field::etag, from.etag);
  if (from.is_gzipped) to.set(http::field::content_encoding, "gzip");
  for (const auto& [name, value] : from.headers) to.set(name, value);
}

std::uint64_t steady_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

// An open connection. Of the network thread alone.
struct Connection : Place {
  explicit Connection(tcp::socket connected) : socket(std::move(connected)) {
    error_code ignored;
    const auto address = socket.remote_endpoint(ignored).address();
    const auto whole =
        address.is_v4() ? make_address_v6(asio::ip::v4_mapped, address.to_v4()) : address.to_v6();
    client = whole.to_bytes();
  }
  tcp::socket socket;
  bool is_replying = false;  // a part of a reply may have gone
};

// Without memory for an answer: made beforehand, and the connection ends.
constexpr std::string_view kNoMemoryAnswer =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Content-Type: application/json\r\n"
    "Cache-Control: no-cache\r\n"
    "Connection: close\r\n"
    "Content-Length: 95\r\n"
    "\r\n"
    R"({"error":{"code":"busy","message":"the server is out of memory: close runs, then ask again"}})"
    "\r\n";
constexpr std::string_view kNoMemoryText = "out of memory: close other runs and ask again";

// Takes no memory, and doesn't wait.
void refuse(tcp::socket& socket) {
  error_code error;
  socket.non_blocking(true, error);
  // What has come is read: else the closing resets the connection, and the answer is lost.
  char taken[4096];
  for (int i = 0; i < 8 && !error; ++i) socket.read_some(asio::buffer(taken), error);
  socket.write_some(asio::buffer(kNoMemoryAnswer), error);
}

// Calls `start` and runs `io` to its end; again, where there was no memory for what they do by
// themselves.
template <class Start>
void run_through(asio::io_context& io, Start start) {
  constexpr std::chrono::milliseconds kPause{20};
  for (;;) {
    try {
      start();
      io.run();
      return;
    } catch (const std::bad_alloc&) {
      MemoryReserve::refill();
      std::this_thread::sleep_for(kPause);
    }
  }
}

// Threads that run handlers. Unlike Asio's own pool, none ends the process where there is no memory
// to go on with.
class Pool {
 public:
  explicit Pool(unsigned threads) {
    threads_.reserve(threads);
    try {
      while (threads_.size() < threads) {
        threads_.emplace_back([this] { run_through(io_, [] {}); });
      }
    } catch (...) {
      join();
      throw;
    }
  }
  ~Pool() { join(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  asio::io_context::executor_type executor() { return io_.get_executor(); }
  // Once what was given to it is done.
  void join() {
    work_.reset();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::vector<std::thread> threads_;
};

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions given, Handler call)
      : options(std::move(given)),
        handler(std::move(call)),
        pool(options.threads),
        acceptor(io),
        signals(io) {}

  asio::awaitable<void> accept_loop();
  asio::awaitable<void> session(tcp::socket socket);
  asio::awaitable<void> deadline_loop();
  // Those that don't run: all, and later what ended since it had no memory.
  void start_loops();
  asio::awaitable<bool> exchange(Connection& place, beast::flat_buffer& buffer, bool is_first);
  asio::awaitable<bool> first_byte(Connection& place, const beast::flat_buffer& buffer);
  asio::awaitable<void> write(Connection& place, const Response& response, unsigned version,
                              bool keep_alive, bool is_head);
  asio::awaitable<Response> call(const Request& request);
  std::uint64_t now_ns() const { return options.now_ns ? options.now_ns() : steady_ns(); }
  void await_within(Place& place, unsigned seconds) const {
    place.deadline_ns = now_ns() + seconds * kNsPerSecond;
  }
  // What it awaits ends with an error.
  void end(Place& place) {
    places.remove(place);
    error_code ignored;
    static_cast<Connection&>(place).socket.close(ignored);
  }
  void end_overdue() {
    const std::uint64_t now = now_ns();
    while (Place* const place = places.overdue(now)) end(*place);
  }
  bool make_room_for(const Place& newcomer) {
    Place* const victim = places.victim_of(newcomer);
    if (victim != nullptr) end(*victim);
    return victim != nullptr;
  }
  void end() {
    error_code ignored;
    acceptor.close(ignored);
    io.stop();
  }

  struct Loop {
    asio::awaitable<void> (Impl::*body)();
    bool is_running = false;
  };

  MemoryReserve reserve;
  HttpOptions options;
  Handler handler;
  Loop loops[2] = {{&Impl::accept_loop}, {&Impl::deadline_loop}};
  Places places;  // network thread only; before io, whose sessions leave it
  asio::io_context io{1};
  Pool pool;
  tcp::acceptor acceptor;
  asio::signal_set signals;
};

asio::awaitable<Response> HttpServer::Impl::call(const Request& request) {
  MemoryReserve::refill();
  try {
    const MemoryReserve::Request scope;
    co_return handler(request);
  } catch (const std::bad_alloc&) {
    co_return error_response(503, "busy", kNoMemoryText);
  } catch (const std::exception& error) {
    co_return error_response(500, "failed", std::string("a bug of the server: ") + error.what());
  }
}

asio::awaitable<void> HttpServer::Impl::write(Connection& place, const Response& response,
                                              unsigned version, bool keep_alive, bool is_head) {
  const std::string_view body =
      response.static_body.empty() ? std::string_view(response.body) : response.static_body;
  Message message{http::status(response.status), version};
  fill_headers(response, message);
  message.keep_alive(keep_alive);
  const bool has_body = response.status != 304;
  place.is_replying = true;
  if (has_body) message.content_length(body.size());
  if (has_body && !is_head) message.body() = {body.data(), body.size()};
  http::response_serializer<http::span_body<const char>> serializer{message};
  await_within(place, options.idle_timeout_s);
  if (is_head) {
    co_await http::async_write_header(place.socket, serializer, asio::use_awaitable);
  } else {
    co_await http::async_write(place.socket, serializer, asio::use_awaitable);
  }
  place.is_replying = false;
}

// Of a request after another one: a client may rest between them, but not within one.
asio::awaitable<bool> HttpServer::Impl::first_byte(Connection& place,
                                                   const beast::flat_buffer& buffer) {
  if (buffer.size() != 0) co_return true;
  await_within(place, options.idle_timeout_s);
  error_code error;
  co_await place.socket.async_wait(tcp::socket::wait_read,
                                   asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

// One request and its reply; false: the connection ends.
asio::awaitable<bool> HttpServer::Impl::exchange(Connection& place, beast::flat_buffer& buffer,
                                                 bool is_first) {
  Parser parser;
  parser.header_limit(kHeaderLimitBytes);
  parser.body_limit(kBodyLimitBytes);
  place.waits_since_ns = now_ns();
  if (!is_first) {
    const bool has_come = co_await first_byte(place, buffer);
    if (!has_come) co_return false;
  }
  await_within(place, options.request_timeout_s);
  error_code error;
  co_await http::async_read(place.socket, buffer, parser,
                            asio::redirect_error(asio::use_awaitable, error));
  place.waits_since_ns = Place::kNever;
  place.deadline_ns = Place::kNever;  // the handler takes as long as it takes
  if (error == http::error::body_limit || error == http::error::header_limit) {
    co_await write(place, error_response(413, "too_large", "send a shorter request"), 11, false,
                   false);
    co_return false;
  }
  if (error) co_return false;
  const bool keep_alive = parser.get().keep_alive();
  const unsigned version = parser.get().version();
  const Request request = to_request(parser.get());
  const Response response =
      co_await asio::co_spawn(pool.executor(), call(request), asio::use_awaitable);
  co_await write(place, response, version, keep_alive, request.method == Method::kHead);
  co_return keep_alive;
}

asio::awaitable<void> HttpServer::Impl::session(tcp::socket socket) {
  struct Seat {
    Seat(Places& taken, Place& mine) : places(taken), place(mine) { places.add(place); }
    ~Seat() { places.remove(place); }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    Places& places;
    Place& place;
  };
  Connection place(std::move(socket));
  const Seat seat(places, place);
  error_code ignored;
  place.socket.set_option(tcp::no_delay(true), ignored);
  try {
    if (places.size() > options.max_connections && !make_room_for(place)) {
      co_await write(place, error_response(503, "busy", "too many connections: try again later"),
                     11, false, false);
    } else {
      beast::flat_buffer buffer{kHeaderLimitBytes + kBodyLimitBytes};
      bool is_first = true;
      while (co_await exchange(place, buffer, is_first)) is_first = false;
    }
  } catch (const boost::system::system_error&) {
    // The peer went away or was too slow; there is nobody to tell.
  } catch (const std::bad_alloc&) {
    if (!place.is_replying) refuse(place.socket);
  }
  place.socket.shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> HttpServer::Impl::deadline_loop() {
  asio::steady_timer timer(io);
  while (acceptor.is_open()) {
    timer.expires_after(std::chrono::milliseconds(options.look_period_ms));
    co_await timer.async_wait(asio::use_awaitable);
    end_overdue();
    MemoryReserve::refill();
  }
}

asio::awaitable<void> HttpServer::Impl::accept_loop() {
  asio::steady_timer pause(io);
  while (acceptor.is_open()) {
    error_code error;
    tcp::socket socket =
        co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // out of descriptors, mostly: wait for some to come back
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    asio::co_spawn(io, session(std::move(socket)), asio::detached);
  }
}

void HttpServer::Impl::start_loops() {
  for (Loop& loop : loops) {
    if (loop.is_running) continue;
    asio::co_spawn(io, (this->*loop.body)(), [&loop](const std::exception_ptr& error) {
      loop.is_running = false;
      if (error) std::rethrow_exception(error);  // to run_through()
    });
    loop.is_running = true;
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop();
  impl_->pool.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(HttpOptions options, Handler handler) {
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return make_error(ErrorCode::kInvalidArgument,
                      "'" + options.address + "' is no IP address: give one such as 127.0.0.1");
  }
  if (options.threads == 0) options.threads = 1;
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  const tcp::endpoint endpoint(address, impl->options.port);
  auto& acceptor = impl->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    const std::string place = impl->options.address + ":" + std::to_string(impl->options.port);
    if (error == asio::error::address_in_use) {
      return make_error(ErrorCode::kAlreadyExists,
                        place + " is in use: stop the other program or choose another port");
    }
    const auto code = error == asio::error::access_denied ? ErrorCode::kPermission : ErrorCode::kIo;
    return make_error(code, "cannot listen on " + place + ": " + error.message());
  }
  impl->options.port = acceptor.local_endpoint(error).port();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::uint16_t HttpServer::port() const { return impl_->options.port; }

Result<void> HttpServer::run() {
  if (impl_->options.stops_on_signals) {
    error_code error;
    impl_->signals.add(SIGINT, error);
    if (!error) impl_->signals.add(SIGTERM, error);
    if (error) return make_error(ErrorCode::kIo, "cannot wait for signals: " + error.message());
    impl_->signals.async_wait([this](error_code failed, int) {
      if (!failed) impl_->end();
    });
  }
  run_through(impl_->io, [this] { impl_->start_loops(); });
  impl_->pool.join();
  return {};
}

void HttpServer::stop() {
  asio::post(impl_->io, [this] { impl_->end(); });
}

bool is_loopback_address(std::string_view address) {
  error_code error;
  const auto parsed = asio::ip::make_address(std::string(address), error);
  if (error) return false;
  if (parsed.is_v6() && parsed.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, parsed.to_v6()).is_loopback();
  }
  return parsed.is_loopback();
}

}  // namespace dial9::server
