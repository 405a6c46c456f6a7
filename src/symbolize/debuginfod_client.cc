// The process's side of debuginfod.h: libdebuginfod, loaded where it is there. Its interface is
// that of the library's version 1; no header is needed to build.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "symbolize/debuginfod.h"

namespace dial9::symbolize {
namespace {

struct Client;  // theirs
using Progress = int (*)(Client*, long, long);

// Of the one fetch that runs; the library has no argument for it in its first version.
struct Watched {
  std::string name;
  std::uint64_t most_bytes = 0;
  bool shows_progress = false;
  bool is_too_large = false;
  std::chrono::steady_clock::time_point shown;
};
Watched* g_watched = nullptr;

int watch(Client*, long so_far, long all) {
  Watched& watched = *g_watched;
  const auto bytes = static_cast<std::uint64_t>(so_far > 0 ? so_far : 0);
  const auto total = static_cast<std::uint64_t>(all > 0 ? all : 0);
  // The library also counts other things here while it waits: small ones.
  if (bytes > watched.most_bytes || total > watched.most_bytes) {
    watched.is_too_large = true;
    return 1;
  }
  const auto now = std::chrono::steady_clock::now();
  if (watched.shows_progress && now - watched.shown > std::chrono::milliseconds(200)) {
    watched.shown = now;
    std::fprintf(stderr, "\r\033[Kdial9: debug information of %s: %llu of %llu KiB",
                 watched.name.c_str(), static_cast<unsigned long long>(bytes >> 10),
                 static_cast<unsigned long long>(total >> 10));
  }
  return 0;
}

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

Result<std::string> result_of(int fd, char* path, const Watched& watched) {
  const std::string found = path == nullptr ? "" : path;
  std::free(path);
  if (fd >= 0) {
    ::close(fd);
    return found;
  }
  if (watched.is_too_large || fd == -EFBIG) {
    return make_error(ErrorCode::kLimit,
                      "it is larger than " + std::to_string(watched.most_bytes >> 20) + " MiB");
  }
  if (fd == -ENOENT) return make_error(ErrorCode::kNotFound, "no server has it");
  return make_error(ErrorCode::kIo, std::strerror(-fd));
}

}  // namespace

Result<std::string> fetch_by_library(const std::string& build_id, const std::string& name,
                                     std::uint64_t most_bytes, bool shows_progress) {
  void* const library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return make_error(ErrorCode::kUnsupported, "no libdebuginfod.so.1; install libdebuginfod1");
  }
  const auto begin = symbol<Client* (*)()>(library, "debuginfod_begin");
  const auto end = symbol<void (*)(Client*)>(library, "debuginfod_end");
  const auto set_progress =
      symbol<void (*)(Client*, Progress)>(library, "debuginfod_set_progressfn");
  const auto find = symbol<int (*)(Client*, const unsigned char*, int, char**)>(
      library, "debuginfod_find_debuginfo");
  if (begin == nullptr || end == nullptr || set_progress == nullptr || find == nullptr) {
    return make_error(ErrorCode::kUnsupported, "libdebuginfod.so.1 lacks a function");
  }
  Client* const client = begin();
  if (client == nullptr) return make_error(ErrorCode::kIo, "libdebuginfod doesn't start");
  Watched watched{.name = name,
                  .most_bytes = most_bytes,
                  .shows_progress = shows_progress && ::isatty(STDERR_FILENO) != 0,
                  .is_too_large = false,
                  .shown = {}};
  // The name is of a trace: it may send no commands to a terminal.
  for (char& c : watched.name) {
    if (c < 0x20 || c == 0x7f) c = '?';
  }
  g_watched = &watched;
  set_progress(client, &watch);
  char* path = nullptr;
  const int fd = find(client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  g_watched = nullptr;
  if (watched.shown.time_since_epoch().count() != 0) std::fputs("\r\033[K", stderr);
  end(client);
  return result_of(fd, path, watched);
}

}  // namespace dial9::symbolize
