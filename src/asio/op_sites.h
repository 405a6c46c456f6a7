// The kinds of Asio operations, by the two literals that Asio describes each with. Strongest property:
// a pair of literals is read once; from then on it is found by their addresses.
// Spec: docs/spec/events_ours.md, "Asio".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dial9/runtime.h"

namespace dial9::asio::hooks {

// Says how an operation becomes ready.
enum class OpKind : std::uint8_t {
  kPosted,  // at its creation: post, defer, dispatch, execute
  kStrand,  // the same, on a strand
  kRead,    // when its descriptor becomes readable
  kWrite,   // writable
  kAnyEvent,
  kTimer,   // at its expiry
  kOther,   // not known: a resolver's answer, a signal, a channel
};

struct OpSite {
  const char* type;
  const char* name;
  OpKind kind;
  bool may_be_strand_turn;  // an executor's own queue, which strands use to get their turn
  runtime::Place* place;    // "socket async_receive"
};

OpKind classify(const char* type, const char* name) noexcept;
const OpSite* find_op_site(const char* type, const char* name) noexcept;

}  // namespace dial9::asio::hooks
