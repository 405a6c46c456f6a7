// The kinds of Asio operations, by the two literals that Asio describes each with. Strongest
// property: a pair of literals is read once; from then on it is found by their addresses. Spec:
// docs/spec/events_ours.md, "Asio".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "dial9/runtime.h"

namespace dial9::asio::hooks {

// Says how an operation becomes ready.
enum class OpKind : std::uint8_t {
  kPosted,  // at its creation: post, defer, dispatch, execute
  kStrand,  // the same, on a strand; the kinds up to here have recorded their wake by their
            // creation
  kRead,    // when its descriptor becomes readable
  kWrite,   // writable
  kAnyEvent,
  kTimer,  // at its expiry
  kOther,  // not known: a resolver's answer, a signal, a channel
};

struct OpSite {
  const char* type;
  const char* name;
  OpKind kind;
  bool may_be_strand_turn;  // an executor's own queue, which strands use to get their turn
  bool
      says_nothing_of_tries;  // a connect: it reports a result of its system call before it has one
  runtime::Place* place;      // "socket async_receive"
};

OpKind classify(const char* type, const char* name) noexcept;

inline constexpr std::uint32_t kSiteSlots = 1024;
extern std::atomic<const OpSite*> g_site_slots[kSiteSlots];
const OpSite* add_op_site(const char* type, const char* name) noexcept;  // or finds it off its slot

inline std::uint32_t site_slot(const char* type, const char* name) noexcept {
  const auto mixed =
      reinterpret_cast<std::uintptr_t>(name) * 31 + reinterpret_cast<std::uintptr_t>(type);
  return static_cast<std::uint32_t>((mixed * 0x9E37'79B9'7F4A'7C15) >> 32) % kSiteSlots;
}

// Null: it isn't known, or is found off its slot.
inline const OpSite* known_op_site(const char* type, const char* name) noexcept {
  // Acquire: pairs with the release store of a finished site.
  const OpSite* site = g_site_slots[site_slot(type, name)].load(std::memory_order_acquire);
  return site != nullptr && site->name == name && site->type == type ? site : nullptr;
}

inline const OpSite* find_op_site(const char* type, const char* name) noexcept {
  const OpSite* site = known_op_site(type, name);
  return site != nullptr ? site : add_op_site(type, name);
}

}  // namespace dial9::asio::hooks
