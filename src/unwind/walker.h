// The walk itself, for any processor, stack and tables:
//
//   pc ──row──► CFA ──load──► return address, saved fp ──► the caller's pc, sp = CFA, fp ──► ...
//
// Each step moves sp up, but for a signal frame, which may lead to another stack; so steps are
// bounded by `frames`. In an interrupted frame all registers are known, above it pc, sp and fp; the
// rare frame that needs another is reached again from below, along with that register.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "unwind/arch.h"
#include "unwind/general_step.h"
#include "unwind/registers.h"
#include "unwind/row.h"
#include "unwind/unwind.h"

namespace dial9::unwind {

// Stack: enter(sp), load(address, word). Tables: row(pc), rules(pc, extra, rules), source(),
// failure(), read_code(pc, to, bytes).
template <class Arch, class Stack, class Tables>
class Walker {
 public:
  Walker(Registers& registers, Stack& stack, Tables& tables, std::span<std::uint64_t> frames,
         const Options& options)
      : registers_(registers), stack_(stack), tables_(tables), frames_(frames), options_(options) {}

  Result run() {
    Place at = interrupted_place();
    while (emit(at.pc) && step(at)) {
    }
    Result result;
    result.count = count_;
    result.stop = stop_;
    result.method = by_table_ ? (by_fp_ ? Method::kMixed : Method::kTables)
                              : (by_fp_ ? Method::kFramePointer : Method::kNone);
    return result;
  }

 private:
  static constexpr std::uint64_t kFirstCodeAddress = 4096;  // below, nothing is ever mapped
  static constexpr std::uint64_t kMaxFpFrameBytes = 1 << 20;
  static constexpr std::uint32_t kMaxSignalFrames = 32;

  // Where the walk is. It stays in machine registers: what is rare or large takes it by value and
  // leaves where it got to in `next_`.
  struct Place {
    std::uint64_t pc;
    std::uint64_t sp;
    std::uint64_t fp;
    bool is_interrupted;
  };

  bool stop(StopReason why) {
    stop_ = why;
    return false;
  }

  Place interrupted_place() {
    stack_.enter(registers_[Arch::kNumbers.sp]);
    return {registers_[Arch::kPc], registers_[Arch::kNumbers.sp], registers_[Arch::kNumbers.fp],
            true};
  }

  bool emit(std::uint64_t pc) {
    if (skipped_ < options_.skip) {
      ++skipped_;
      return true;
    }
    if (count_ == frames_.size()) {
      return stop(StopReason::kFramesFull);
    }
    frames_[count_++] = pc;
    return true;
  }

  [[gnu::always_inline]] bool step(Place& at) {
    if (options_.strategy == Strategy::kFramePointers) {
      return step_by_fp(at, StopReason::kImplausibleFrame);
    }
    const Row row = tables_.row(at.is_interrupted ? at.pc : at.pc - 1);
    switch (row.kind) {
      case Row::Kind::kFromSp:
        return step_row(at, row, at.sp + slots(row.cfa_slots));
      case Row::Kind::kFromFp:
        return step_row(at, row, at.fp + slots(row.cfa_slots));
      case Row::Kind::kLoadedFromFp: {
        std::uint64_t cfa = 0;
        return load(at.fp + slots(row.cfa_slots), cfa) && step_row(at, row, cfa);
      }
      case Row::Kind::kOutermost:
        return stop(StopReason::kEndOfStack);
      default:
        break;
    }
    if (!step_rarely(at, row.kind)) {
      return false;
    }
    at.pc = next_.pc;
    at.sp = next_.sp;
    at.fp = next_.fp;
    at.is_interrupted = next_.is_interrupted;
    return true;
  }

  [[gnu::noinline]] bool step_rarely(Place at, Row::Kind kind) {
    next_ = at;
    switch (kind) {
      case Row::Kind::kSignalFrame:
        return step_signal_frame(at);
      case Row::Kind::kGeneral:
        return step_general(at);
      case Row::Kind::kNoTable:
        return step_without_table(at);
      default:
        return stop_at_bad_row(kind);
    }
  }

  static std::uint64_t slots(std::int16_t count) {
    return static_cast<std::uint64_t>(std::int64_t{count} * 8);
  }

  [[gnu::always_inline]] bool load(std::uint64_t address, std::uint64_t& word) {
    if (address % 8 != 0) {
      return stop(StopReason::kImplausibleFrame);
    }
    return stack_.load(address, word) || stop(StopReason::kUnreadable);
  }

  [[gnu::always_inline]] bool step_row(Place& at, const Row& row, std::uint64_t cfa) {
    if (!is_above<Arch>(cfa, at.sp, at.is_interrupted)) {
      return stop(StopReason::kImplausibleFrame);
    }
    std::uint64_t ra = 0;
    if (!(row.ra_slots == 0 ? return_register(at, ra) : load(cfa + slots(row.ra_slots), ra))) {
      return false;
    }
    std::uint64_t fp = at.fp;
    if (row.fp_rule != Row::FpRule::kSame) {
      const bool is_at_cfa = row.fp_rule == Row::FpRule::kAtCfa;
      if (!load(is_at_cfa ? cfa + slots(row.fp_slots) : at.fp, fp)) {
        return false;
      }
    }
    by_table_ = true;
    return to_caller(at, ra, cfa, fp);
  }

  // Where a call leaves the return address in a register: only an interrupted frame still has it.
  [[gnu::always_inline]] bool return_register(const Place& at, std::uint64_t& ra) {
    if (Arch::kCallBytes != 0 || !at.is_interrupted || !registers_.knows(Arch::kNumbers.ra)) {
      return stop(StopReason::kUnsupportedRule);
    }
    ra = registers_[Arch::kNumbers.ra];
    return true;
  }

  [[gnu::always_inline]] bool to_caller(Place& at, std::uint64_t ra, std::uint64_t cfa,
                                        std::uint64_t fp) {
    ra = Arch::code_address(ra);
    if (ra < kFirstCodeAddress) {
      return stop(ra == 0 ? StopReason::kEndOfStack : StopReason::kImplausibleFrame);
    }
    at.pc = ra;  // one by one: a wide copy of narrow stores would stall
    at.sp = cfa;
    at.fp = fp;
    at.is_interrupted = false;
    ++steps_;
    return true;
  }

  bool stop_at_bad_row(Row::Kind kind) {
    const StopReason why = tables_.failure();
    if (why == StopReason::kUnreadable || why == StopReason::kBudget) {
      return stop(why);
    }
    return stop(kind == Row::Kind::kCorrupt ? StopReason::kCorruptTable
                                            : StopReason::kUnsupportedRule);
  }

  bool step_without_table(const Place& at) {
    const StopReason why = tables_.failure() == StopReason::kNotPrepared ? StopReason::kNotPrepared
                                                                         : StopReason::kNoTable;
    std::array<std::uint8_t, Arch::kTrampoline.size()> code{};
    const std::size_t readable = tables_.read_code(at.pc, code.data(), code.size());
    if (code == Arch::kTrampoline) {
      return step_signal_frame(at);
    }
    if (at.is_interrupted && readable == 0) {
      return step_wild_call(at);
    }
    if constexpr (!Arch::kStubsHaveTables) {
      if (const auto pushed_bytes = stub_pushed_bytes(at)) {
        std::uint64_t ra = 0;
        by_fp_ = true;  // by convention, not by table
        return return_register(at, ra) && to_caller(next_, ra, at.sp + *pushed_bytes, at.fp);
      }
    }
    return options_.strategy == Strategy::kTables ? stop(why) : step_by_fp(next_, why);
  }

  // In a linkage stub: what that has pushed.
  std::optional<std::uint64_t> stub_pushed_bytes(const Place& at) {
    if (!at.is_interrupted) {
      return std::nullopt;
    }
    typename Arch::StubWindow code{};
    std::array<std::uint8_t, sizeof code> bytes{};
    tables_.read_code(at.pc - Arch::kStubBefore * sizeof code[0], bytes.data(), bytes.size());
    std::memcpy(code.data(), bytes.data(), sizeof code);
    return Arch::stub_pushed_bytes(code);
  }

  // {caller's fp, return address} at fp. `otherwise`: why the walk ends if there is no such pair.
  [[gnu::always_inline]] bool step_by_fp(Place& at, StopReason otherwise) {
    if (at.fp == 0 && options_.strategy == Strategy::kFramePointers) {
      return stop(StopReason::kEndOfStack);  // the psABI's mark of the outermost frame
    }
    if (at.fp % 8 != 0 || at.fp < at.sp || at.fp - at.sp > kMaxFpFrameBytes) {
      return stop(otherwise);
    }
    std::uint64_t fp = 0;
    std::uint64_t ra = 0;
    if (!stack_.load(at.fp, fp) || !stack_.load(at.fp + 8, ra)) {
      return stop(otherwise);
    }
    by_fp_ = true;
    return to_caller(at, ra, at.fp + 16, fp);
  }

  bool step_signal_frame(const Place& at) {
    if (++signal_frames_ > kMaxSignalFrames) {
      return stop(StopReason::kImplausibleFrame);
    }
    registers_.clear();
    for (const SavedRegister& saved : Arch::kSignalFrame) {
      std::uint64_t word = 0;
      if (!load(at.sp + saved.offset_bytes, word)) {
        return false;
      }
      registers_.set(saved.number, word);
    }
    by_table_ = true;
    steps_ = 0;
    next_ = interrupted_place();
    return true;
  }

  // A call through a null or wild pointer ended here: the return address is where a call leaves it.
  bool step_wild_call(const Place& at) {
    std::uint64_t ra = 0;
    if (!(Arch::kCallBytes != 0 ? load(at.sp, ra) : return_register(at, ra))) {
      return false;
    }
    by_fp_ = true;  // by convention, not by table
    return to_caller(next_, ra, at.sp + Arch::kCallBytes, at.fp);
  }

  bool step_general(const Place& at) {
    GeneralStep<Arch, Stack, Tables> general(stack_, tables_);
    Frame frame;
    if (at.is_interrupted) {
      frame.registers = registers_;
    } else {
      frame.registers.set(Arch::kPc, at.pc);
      frame.registers.set(Arch::kNumbers.sp, at.sp);
      frame.registers.set(Arch::kNumbers.fp, at.fp);
      frame.is_interrupted = false;
    }
    auto failure = general.to_caller(frame, kNoRegister);
    if (failure == StopReason::kUnsupportedRule && !at.is_interrupted &&
        general.missing() != kNoRegister && follow(general, general.missing(), at, frame)) {
      failure = general.to_caller(frame, kNoRegister);
    }
    if (failure) {
      return stop(*failure);
    }
    by_table_ = true;
    return to_caller(next_, frame.registers[Arch::kPc], frame.registers[Arch::kNumbers.sp],
                     frame.registers[Arch::kNumbers.fp]);
  }

  // Walks again from the interrupted frame, this time along with the register `wanted`, and arrives
  // at the current frame. At most a few frames as a rule: whoever needs such a register sets it.
  bool follow(GeneralStep<Arch, Stack, Tables>& general, unsigned wanted, const Place& at,
              Frame& frame) {
    frame.registers = registers_;
    frame.is_interrupted = true;
    for (std::uint32_t i = 0; i < steps_; ++i) {
      if (general.to_caller(frame, wanted)) {
        return false;
      }
    }
    return frame.registers.knows(wanted) && frame.registers[Arch::kPc] == at.pc &&
           frame.registers[Arch::kNumbers.sp] == at.sp;
  }

  Registers& registers_;  // of the last interrupted frame
  Stack& stack_;
  Tables& tables_;
  const std::span<std::uint64_t> frames_;
  const Options& options_;
  Place next_{};
  bool by_table_ = false;
  bool by_fp_ = false;
  std::uint32_t count_ = 0;
  std::uint32_t skipped_ = 0;
  std::uint32_t signal_frames_ = 0;
  std::uint32_t steps_ = 0;  // since the last interrupted frame
  StopReason stop_ = StopReason::kEndOfStack;
};

}  // namespace dial9::unwind
