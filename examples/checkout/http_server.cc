// The HTTP server's sessions on Boost.Beast, in the one translation unit that includes it.
// A session reads on its strand: first "some" bytes under the idle limit, then the whole request
// under the request limit, so that a slow client and a quiet one are told apart.
// SPDX-License-Identifier: Apache-2.0
#include "http_server.h"

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tasks.h"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace checkout {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = 4096;
constexpr auto kAcceptBackoff = std::chrono::milliseconds(100);

// The status for a request that can't be read; 0: the connection just ends (after a time-out Beast
// has closed it already).
int status_for(const error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  if (error.category() == make_error_code(http::error::bad_method).category()) return 400;
  return 0;
}

std::string error_body(int status) {
  return R"({"error":")" +
         std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))) +
         "\"}\n";
}

}  // namespace

class Session;

// What the server's tasks share. They hold it by shared_ptr, so it outlives them in any order of
// destruction.
struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  State(asio::io_context& context, HttpOptions server_options, HttpHandler server_handler,
        std::shared_ptr<Counters> server_counters)
      : io(context),
        options(std::move(server_options)),
        handler(std::move(server_handler)),
        counters(std::move(server_counters)),
        acceptor(asio::make_strand(context)) {}

  asio::awaitable<void> accept();
  bool add(Session* session);  // false: over the limit, or shutting down
  void remove(Session* session);
  void finish_if_drained();

  asio::io_context& io;
  const HttpOptions options;
  const HttpHandler handler;
  const std::shared_ptr<Counters> counters;
  tcp::acceptor acceptor;  // on a strand of its own, as the accepting task

  std::mutex mutex;
  std::unordered_set<Session*> sessions;
  std::atomic<bool> is_stopping{false};  // set under the mutex, before sessions are told
  std::function<void()> on_drained;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Server = std::shared_ptr<HttpServer::State>;
  Session(tcp::socket socket, Server server)
      : stream_(std::move(socket)), server_(std::move(server)), buffer_(kReadBytes * 32) {}
  ~Session() { server_->remove(this); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  asio::awaitable<void> run(std::shared_ptr<Session> self);

  // Any thread, once the server is stopping: ends the session now if it has no request in work;
  // else it ends by itself after its response.
  void end_if_idle() {
    asio::post(stream_.get_executor(), [session = weak_from_this()] {
      if (const auto self = session.lock()) {
        if (self->is_idle_) self->stream_.cancel();
      }
    });
  }

 private:
  using Parser = http::request_parser<http::string_body>;

  asio::awaitable<bool> read(Parser& parser);
  asio::awaitable<bool> write(HttpResponse response, bool keeps_alive);
  asio::awaitable<HttpResponse> answer(HttpRequest request);

  beast::tcp_stream stream_;
  const Server server_;
  beast::flat_buffer buffer_;
  bool is_idle_ = true;  // on the strand
};

asio::awaitable<void> Session::run(std::shared_ptr<Session>) {
  for (;;) {
    Parser parser;
    parser.header_limit(server_->options.max_head_bytes);
    parser.body_limit(server_->options.max_body_bytes);
    const bool is_read = co_await read(parser);
    if (!is_read) break;
    auto message = parser.release();
    const bool wants_more = message.keep_alive();
    HttpRequest request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    request.body = std::move(message.body());
    HttpResponse response = co_await answer(std::move(request));
    const bool keeps_alive = wants_more && !server_->is_stopping;
    const bool is_written = co_await write(std::move(response), keeps_alive);
    if (!is_written || !keeps_alive) break;
  }
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
}

// Reads the next request; if it can't be read but can be answered, answers. False: close.
asio::awaitable<bool> Session::read(Parser& parser) {
  if (buffer_.size() == 0) {
    if (server_->is_stopping) co_return false;
    is_idle_ = true;
    stream_.expires_after(server_->options.idle_limit);
    const auto [error, count] =
        co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kToken);
    is_idle_ = false;
    if (error) co_return false;
    buffer_.commit(count);
  }
  stream_.expires_after(server_->options.request_limit);
  const auto [error, count] = co_await http::async_read(stream_, buffer_, parser, kToken);
  if (!error) co_return true;
  if (error == beast::error::timeout) Counters::add(server_->counters->request_timeouts);
  const int status = status_for(error);
  if (status != 0) {
    HttpResponse response;
    response.status = status;
    response.body = error_body(status);
    co_await write(std::move(response), false);
  }
  co_return false;
}

asio::awaitable<HttpResponse> Session::answer(HttpRequest request) {
  try {
    co_return co_await server_->handler(std::move(request));
  } catch (const std::exception&) {
    HttpResponse response;
    response.status = 500;
    response.body = error_body(500);
    co_return response;
  }
}

asio::awaitable<bool> Session::write(HttpResponse response, bool keeps_alive) {
  server_->counters->count_response(response.status, response.body.size());
  http::response<http::string_body> message;
  message.result(static_cast<unsigned>(response.status));
  message.set(http::field::server, "checkout");
  message.set(http::field::content_type, response.content_type);
  if (response.status == 503) message.set(http::field::retry_after, "1");
  message.keep_alive(keeps_alive);
  message.body() = std::move(response.body);
  message.prepare_payload();
  stream_.expires_after(server_->options.write_limit);
  const auto [error, count] = co_await http::async_write(stream_, message, kToken);
  co_return !error;
}

bool HttpServer::State::add(Session* session) {
  const std::lock_guard lock(mutex);
  if (is_stopping || sessions.size() >= options.max_connections) return false;
  sessions.insert(session);
  counters->connections_open.store(sessions.size(), std::memory_order_relaxed);
  return true;
}

void HttpServer::State::remove(Session* session) {
  {
    const std::lock_guard lock(mutex);
    if (sessions.erase(session) == 0) return;
    counters->connections_open.store(sessions.size(), std::memory_order_relaxed);
  }
  finish_if_drained();
}

void HttpServer::State::finish_if_drained() {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex);
    if (is_stopping && sessions.empty()) drained = std::exchange(on_drained, nullptr);
  }
  if (drained) drained();
}

asio::awaitable<void> HttpServer::State::accept() {
  const auto self = shared_from_this();
  for (;;) {
    tcp::socket socket(asio::make_strand(io));
    const auto [error] = co_await acceptor.async_accept(socket, kToken);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // most often no descriptor is left: let some end
      asio::steady_timer pause(acceptor.get_executor(), kAcceptBackoff);
      co_await pause.async_wait(kToken);
      continue;
    }
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto strand = socket.get_executor();
    const auto session = std::make_shared<Session>(std::move(socket), self);
    if (!add(session.get())) {
      Counters::add(counters->connections_refused);
      continue;
    }
    Counters::add(counters->connections_accepted);
    spawn(strand, "session", session->run(session));
  }
}

HttpServer::HttpServer(asio::io_context& io, HttpOptions options, HttpHandler handler,
                       std::shared_ptr<Counters> counters)
    : state_(std::make_shared<State>(io, std::move(options), std::move(handler),
                                     std::move(counters))) {
  const tcp::endpoint endpoint(asio::ip::make_address(state_->options.address),
                               state_->options.port);
  state_->acceptor.open(endpoint.protocol());
  state_->acceptor.set_option(tcp::acceptor::reuse_address(true));
  state_->acceptor.bind(endpoint);
  state_->acceptor.listen(4096);
}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::start() { spawn(state_->acceptor.get_executor(), "listener", state_->accept()); }

void HttpServer::shut_down(std::function<void()> on_drained) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopping = true;
    state_->on_drained = std::move(on_drained);
    for (Session* session : state_->sessions) session->end_if_idle();
  }
  asio::post(state_->acceptor.get_executor(), [state = state_] {
    error_code ignored;
    state->acceptor.close(ignored);
    state->finish_if_drained();
  });
}

}  // namespace checkout
