// Walks a copied stack of which only pc and sp are known. Most walks never need the frame pointer,
// or meet a frame that saved it first. Else candidates are tried: {caller's fp, return address}
// pairs from the stack pointer up. Strongest property: a walk that used a wrong one is taken only
// if it fits to the outermost frame and a direct call there calls the frame it leads to, or, where
// none is like that, if it is the first with a call through a pointer; and it is marked. What stays
// possible is a leftover of a call through a pointer below another such call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "unwind/arch.h"
#include "unwind/cfi.h"
#include "unwind/row.h"
#include "unwind/unwind.h"

namespace dial9::unwind {

// Stack and Tables as the walker's.
template <class Arch, class Stack, class Tables>
class FpGuess {
 public:
  FpGuess(Stack& stack, Tables& tables, std::span<std::uint64_t> frames)
      : stack_(stack), tables_(tables), frames_(frames) {}

  // `walk(fp)` walks the stack from `sp` into the frames.
  template <class Walk>
  Result run(std::uint64_t sp, Walk walk) {
    const Result without = walk(kUnknownFp);
    if (!needs_fp(without.stop)) return without;
    unsigned tries = 0;
    std::uint64_t indirect = 0;  // 0: none
    for (std::uint64_t at = sp; at - sp < kMostBytes && tries < kMostWalks; at += 8) {
      std::uint64_t ra = 0;
      if (!stack_.load(at + 8, ra)) break;
      if (!call_before(ra).is_there) continue;
      ++tries;
      Result result = walk(at);
      // What wasn't read might have been the right one.
      if (result.stop == StopReason::kBudget) return walk(kUnknownFp);
      const Fit fit = is_whole(result) ? call_fit(ra, result.count) : Fit::kNone;
      if (fit == Fit::kIndirect && indirect == 0) indirect = at;
      if (fit != Fit::kDirect) continue;
      result.has_guessed_fp = true;
      return result;
    }
    if (indirect == 0) return walk(kUnknownFp);
    Result result = walk(indirect);
    result.has_guessed_fp = true;
    return result;
  }

 private:
  // Odd, so no step takes it for a place: a walk that comes to need it stops there.
  static constexpr std::uint64_t kUnknownFp = 1;
  static constexpr std::uint64_t kMostBytes = 8192;
  static constexpr unsigned kMostWalks = 64;

  static bool needs_fp(StopReason why) {
    return why == StopReason::kImplausibleFrame || why == StopReason::kNoTable ||
           why == StopReason::kUnsupportedRule;
  }

  Call call_before(std::uint64_t ra) {
    std::array<std::uint8_t, Arch::kCallLookBytes> code{};
    if (ra < 4096 || tables_.read_code(ra - code.size(), code.data(), code.size()) != code.size()) {
      return {};
    }
    return Arch::call_before(code.data(), ra);
  }

  std::uint64_t function_at(std::uint64_t pc) {
    FrameRules rules;
    return tables_.rules(pc, kNoRegister, rules) ? rules.begin : 0;
  }

  // A return address of 0 won't do: words of zeros lie about.
  bool is_whole(const Result& result) {
    if (result.stop == StopReason::kFramesFull) return true;
    return result.stop == StopReason::kEndOfStack && result.count > 1 &&
           tables_.row(frames_[result.count - 1] - 1).kind == Row::Kind::kOutermost;
  }

  // Where a call of `target` leads: through a PLT stub to what its slot holds. 0: not known.
  std::uint64_t destination(std::uint64_t target) {
    if (function_at(target) == target) return target;
    std::array<std::uint8_t, Arch::kStubBytes> code{};
    if (tables_.read_code(target, code.data(), code.size()) != code.size()) return 0;
    const std::uint64_t slot = Arch::stub_slot(code.data(), target);
    std::array<std::uint8_t, 8> word{};
    if (slot == 0 || tables_.read_code(slot, word.data(), word.size()) != word.size()) return 0;
    return std::bit_cast<std::uint64_t>(word);
  }

  // Does the call before `ra` call the frame that it leads to? Of one through a pointer nobody
  // knows. The other frames follow from tables.
  enum class Fit : std::uint8_t { kNone, kIndirect, kDirect };
  Fit call_fit(std::uint64_t ra, std::uint32_t count) {
    for (std::uint32_t i = 1; i < count; ++i) {
      if (frames_[i] != ra) continue;
      const Call call = call_before(ra);
      if (call.target == 0) return Fit::kIndirect;
      const std::uint64_t callee = function_at(i == 1 ? frames_[0] : frames_[i - 1] - 1);
      const bool is_it = callee != 0 && callee == destination(call.target);
      return is_it ? Fit::kDirect : Fit::kNone;
    }
    return Fit::kNone;
  }

  Stack& stack_;
  Tables& tables_;
  std::span<std::uint64_t> frames_;
};

}  // namespace dial9::unwind
