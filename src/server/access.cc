// See access.h.
// Strongest property: a name that isn't ours never reaches a route on a loopback server.
// Spec: docs/spec/http_api.md, "Who may ask".
// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <sys/random.h>

#include <array>

namespace dial9::server {
namespace {

// "name:80" and "[::1]:80" without the port, and without the brackets.
std::string_view host_name(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const std::size_t close = host.find(']');
    return close == std::string_view::npos ? std::string_view{} : host.substr(1, close - 1);
  }
  return host.substr(0, host.rfind(':'));
}

bool is_local_name(std::string_view host) {
  const std::string_view name = host_name(host);
  return name == "localhost" || is_loopback_address(name);
}

// The origin of a page that this server delivered: its authority is the Host that the browser used.
bool is_own_origin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == host) return true;
  }
  return false;
}

// Compares all bytes whatever differs, so that the time tells nothing about the token.
bool is_equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

std::optional<Response> refuse(const AccessRules& rules, const Request& request, bool is_api) {
  if (rules.is_loopback && !is_local_name(request.host)) {
    return error_response(403, "forbidden",
                          "this server answers to localhost only: open it as http://localhost");
  }
  if (!request.origin.empty() && !is_own_origin(request.origin, request.host)) {
    return error_response(403, "forbidden", "pages of another origin may not ask this server");
  }
  if (rules.token.empty() || !is_api) return std::nullopt;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization;
  if (given.starts_with(kBearer) &&
      is_equal_in_constant_time(given.substr(kBearer.size()), rules.token)) {
    return std::nullopt;
  }
  Response out = error_response(401, "unauthorized",
                                "open the address with the token that the server printed at start");
  out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

Result<std::string> make_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return make_error(ErrorCode::kIo, "no random bytes for a token: give one with --token-file");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

}  // namespace dial9::server
