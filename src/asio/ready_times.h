// When descriptors became ready, when objects were cancelled, and who held a strand last: three
// bounded tables that hooks write on one thread and read on another. Strongest property: a look-up
// returns what was stored for exactly this descriptor or object, or says that it doesn't know;
// never a neighbour's. Spec: docs/spec/events_ours.md, "Asio".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::asio::hooks {

// Descriptors from here on have no ready times. The tables take 1.3 MB of address space, of which
// memory is used for the parts that are.
inline constexpr std::uint32_t kMaxFd = 65'536;
inline constexpr std::uint32_t kNoFd = ~std::uint32_t{0};

// The reactor's registration of a descriptor, by address. A descriptor that is deregistered, or
// whose registration is reused for another, is forgotten at once.
void map_registration(std::uintptr_t registration, std::uint32_t fd) noexcept;
void unmap_registration(std::uintptr_t registration) noexcept;
std::uint32_t fd_of_registration(std::uintptr_t registration) noexcept;  // kNoFd: unknown

void set_ready(std::uint32_t fd, bool is_read, bool is_write, std::uint64_t when_ns) noexcept;
std::uint64_t last_readable_ns(std::uint32_t fd) noexcept;  // 0: unknown
std::uint64_t last_writable_ns(std::uint32_t fd) noexcept;

// What happened to an object last: a cancel (who = the task), or the end of a strand's handler (who
// = the task, tid = the thread).
struct ObjectNote {
  std::uint64_t when_ns = 0;
  std::uint64_t who = 0;
  std::uint32_t tid = 0;
};

class ObjectNotes {
 public:
  void set(const void* object, const ObjectNote& note) noexcept;
  // False: nothing is known of this object.
  bool get(const void* object, ObjectNote* note) const noexcept;

 private:
  static constexpr std::uint32_t kSlots = 4096;
  // object is 0 while the slot is being written; a reader that finds the same object before and
  // after has read what belongs to it.
  struct Slot {
    std::uintptr_t object;
    std::uint64_t when_ns;
    std::uint64_t who;
    std::uint64_t tid;
  };
  Slot slots_[kSlots];
};

extern ObjectNotes g_cancels;
extern ObjectNotes g_strands;

}  // namespace dial9::asio::hooks
