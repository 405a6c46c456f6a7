// Memory set aside for the server itself: what it takes to read a request and to say that there is
// no memory for it. Strongest property: while a request's handler runs, its thread gets nothing of
// it, so that one large request fails, and not the server.
// Spec: docs/spec/http_api.md, "Who may ask".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace dial9::server {

// While one lives, an operator new of this process that finds no memory is given a piece of the
// reserve (address space that nobody has touched) and tries again; std::bad_alloc once all pieces
// are gone. One at a time; another one does nothing.
class MemoryReserve {
 public:
  MemoryReserve();
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Takes again what was given, as far as there is memory. Any thread; a few loads where nothing
  // was given.
  static void refill() noexcept;

  // While one lives, its thread gets std::bad_alloc at once.
  class Request {
   public:
    Request() noexcept;
    ~Request();
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
  };

 private:
  bool is_installed_ = false;
};

}  // namespace dial9::server
