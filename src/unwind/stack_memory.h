// Where a walk reads stack words from: the calling thread's stack (plain loads where it is known to
// be mapped, kernel copies in windows elsewhere) or a copy that was taken before.
// Async-signal-safe; never faults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "unwind/process_memory.h"
#include "unwind/thread_stack.h"
#include "unwind/unwind.h"

namespace dial9::unwind {

template <class Arch>
class LiveStack {
 public:
  explicit LiveStack(bool distrust) : distrust_(distrust) {}

  // The walk goes on at `sp`: called at the start and wherever sp may have changed stacks.
  void enter(std::uint64_t sp) {
    trusted_ = distrust_ ? StackRange{} : own_stack(sp);
    trusted_.low = sp;  // below it a guard page may lie; red zone words are copied by the kernel
    trusted_bytes_ = trusted_.high > sp + 8 ? trusted_.high - sp - 8 : 0;
  }

  // The word at `address`, a multiple of 8; false if it isn't readable.
  bool load(std::uint64_t address, std::uint64_t& word) {
    if (address - trusted_.low <= trusted_bytes_ && trusted_bytes_ != 0) {
      word = Arch::load_word(address);
      return true;
    }
    std::uint64_t copied = 0;  // `word` itself stays in a register: its address goes nowhere
    const bool is_readable = load_guarded(address, copied);
    word = copied;
    return is_readable;
  }

 private:
  [[gnu::noinline]] bool load_guarded(std::uint64_t address, std::uint64_t& word) {
    if (window_bytes_ < 8 || address - window_begin_ > window_bytes_ - 8) {
      window_begin_ = address;
      window_bytes_ = memory_.copy(address, window_.data(), window_.size());
      if (window_bytes_ < 8) {
        return false;
      }
    }
    std::memcpy(&word, window_.data() + (address - window_begin_), 8);
    return true;
  }

  bool distrust_;
  StackRange trusted_;
  std::uint64_t trusted_bytes_ = 0;  // of first bytes of words, so less by 8
  ProcessMemory memory_;
  std::uint64_t window_begin_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::array<std::uint8_t, 640> window_;  // unset beyond window_bytes_
};

class CopiedStack {
 public:
  explicit CopiedStack(const StackCopy& copy) : copy_(copy) {}

  void enter(std::uint64_t) {}
  bool load(std::uint64_t address, std::uint64_t& word) {
    const std::uint64_t offset = address - copy_.address;
    if (copy_.bytes.size() < 8 || offset > copy_.bytes.size() - 8) {
      return false;
    }
    std::memcpy(&word, copy_.bytes.data() + offset, 8);
    return true;
  }

 private:
  const StackCopy& copy_;
};

}  // namespace dial9::unwind
