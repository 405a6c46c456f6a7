// See memory_reserve.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace dial9::server {
namespace {

// Each is more than the allocator takes from the system for something small; not the C library's
// memory, which only the arena that it is of could give out again.
constexpr std::size_t kPieceBytes = std::size_t{1280} << 10;
constexpr std::size_t kPieces = 16;

std::atomic<void*> g_pieces[kPieces] = {};
std::atomic<bool> g_is_taken = false;
thread_local bool t_is_request = false;

void* map_piece() noexcept {
  void* const piece = ::mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return piece == MAP_FAILED ? nullptr : piece;
}

bool give_piece() noexcept {
  for (std::atomic<void*>& place : g_pieces) {
    void* const piece = place.exchange(nullptr);
    if (piece != nullptr) return ::munmap(piece, kPieceBytes) == 0;
  }
  return false;
}

void on_no_memory() {
  if (t_is_request || !give_piece()) throw std::bad_alloc();
}

}  // namespace

MemoryReserve::MemoryReserve() : is_installed_(!g_is_taken.exchange(true)) {
  if (!is_installed_) return;
  refill();
  std::set_new_handler(on_no_memory);
}

MemoryReserve::~MemoryReserve() {
  if (!is_installed_) return;
  std::set_new_handler(nullptr);
  while (give_piece()) {
  }
  g_is_taken = false;
}

void MemoryReserve::refill() noexcept {
  for (std::atomic<void*>& place : g_pieces) {
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    void* const piece = map_piece();
    if (piece == nullptr) return;
    void* none = nullptr;
    if (!place.compare_exchange_strong(none, piece)) ::munmap(piece, kPieceBytes);
  }
}

MemoryReserve::Request::Request() noexcept { t_is_request = true; }
MemoryReserve::Request::~Request() { t_is_request = false; }

}  // namespace dial9::server
