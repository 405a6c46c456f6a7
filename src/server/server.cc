// See server.h.
// Strongest property: an address that isn't loopback never comes up without a token.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include "server/base_runs.h"
#include "server/http.h"
#include "server/routes.h"
#include "server/run_files.h"

namespace dial9::server {
namespace {

std::string url_of(const ServeOptions& options, std::uint16_t port, const std::string& token) {
  const bool is_v6 = options.address.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + options.address + "]" : options.address;
  std::string out = "http://" + host + ":" + std::to_string(port) + "/";
  if (!token.empty()) out += "#token=" + token;
  return out;
}

}  // namespace

Result<void> serve(const ServeOptions& options, const std::function<void(const Serving&)>& ready,
                   const std::function<void(std::function<void()>)>& stop_when) {
  auto source = runs_in(options.path);
  if (source && !options.base_path.empty()) {
    auto base = runs_in(options.base_path);
    if (!base) return std::unexpected(base.error());
    source = with_base(std::move(*source), std::move(*base));
  }
  if (!source) return std::unexpected(source.error());
  AccessRules rules{is_loopback_address(options.address), options.token};
  if (!rules.is_loopback && rules.token.empty()) {
    auto token = make_token();
    if (!token) return std::unexpected(token.error());
    rules.token = std::move(*token);
  }
  RunStore store(std::move(*source), {options.memory_bytes});
  const Service service(rules, store, embedded_assets(), options.namer);
  HttpOptions http;
  http.address = options.address;
  http.port = options.port;
  http.threads = options.threads;
  http.stops_on_signals = options.stops_on_signals;
  auto server = HttpServer::listen(
      http, [&service](const Request& request) { return service.handle(request); });
  if (!server) return std::unexpected(server.error());
  if (stop_when) stop_when([&server] { (*server)->stop(); });
  if (ready) ready({(*server)->port(), url_of(options, (*server)->port(), rules.token)});
  return (*server)->run();
}

}  // namespace dial9::server
