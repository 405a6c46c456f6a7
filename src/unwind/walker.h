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
    pc_ = registers_[Arch::kPc];
    sp_ = registers_[Arch::kNumbers.sp];
    fp_ = registers_[Arch::kNumbers.fp];
    stack_.enter(sp_);
    while (emit() && step()) {
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

  bool stop(StopReason why) {
    stop_ = why;
    return false;
  }

  bool emit() {
    if (skipped_ < options_.skip) {
      ++skipped_;
      return true;
    }
    if (count_ == frames_.size()) {
      return stop(StopReason::kFramesFull);
    }
    frames_[count_++] = pc_;
    return true;
  }

  bool step() {
    if (options_.strategy == Strategy::kFramePointers) {
      return step_by_fp(StopReason::kImplausibleFrame);
    }
    const std::uint64_t place = is_interrupted_ ? pc_ : pc_ - 1;
    const Row row = tables_.row(place);
    std::uint64_t cfa = 0;
    switch (row.kind) {
      case Row::Kind::kFromSp: cfa = sp_ + slots(row.cfa_slots); break;
      case Row::Kind::kFromFp: cfa = fp_ + slots(row.cfa_slots); break;
      case Row::Kind::kLoadedFromFp:
        if (!load(fp_ + slots(row.cfa_slots), cfa)) {
          return false;
        }
        break;
      case Row::Kind::kSignalFrame: return step_signal_frame();
      case Row::Kind::kOutermost: return stop(StopReason::kEndOfStack);
      case Row::Kind::kGeneral: return step_general();
      case Row::Kind::kNoTable: return step_without_table();
      case Row::Kind::kCorrupt: case Row::Kind::kUnsupported: return stop_at_bad_row(row.kind);
    }
    return step_row(row, cfa);
  }

  static std::uint64_t slots(std::int16_t count) {
    return static_cast<std::uint64_t>(std::int64_t{count} * 8);
  }

  bool load(std::uint64_t address, std::uint64_t& word) {
    if (address % 8 != 0) {
      return stop(StopReason::kImplausibleFrame);
    }
    return stack_.load(address, word) || stop(StopReason::kUnreadable);
  }

  bool step_row(const Row& row, std::uint64_t cfa) {
    if (!is_above<Arch>(cfa, sp_, is_interrupted_)) {
      return stop(StopReason::kImplausibleFrame);
    }
    std::uint64_t ra = 0;
    if (row.ra_slots == 0) {
      if (!return_register(ra)) {
        return stop(StopReason::kUnsupportedRule);
      }
    } else if (!load(cfa + slots(row.ra_slots), ra)) {
      return false;
    }
    std::uint64_t fp = fp_;
    if (row.fp_rule == Row::FpRule::kAtCfa) {
      if (!load(cfa + slots(row.fp_slots), fp)) {
        return false;
      }
    } else if (row.fp_rule == Row::FpRule::kAtFp && !load(fp_, fp)) {
      return false;
    }
    by_table_ = true;
    return to_caller(ra, cfa, fp);
  }

  // Where a call leaves the return address in a register: only an interrupted frame still has it.
  bool return_register(std::uint64_t& ra) const {
    if (Arch::kCallBytes != 0 || !is_interrupted_ || !registers_.knows(Arch::kNumbers.ra)) {
      return false;
    }
    ra = registers_[Arch::kNumbers.ra];
    return true;
  }

  bool to_caller(std::uint64_t ra, std::uint64_t cfa, std::uint64_t fp) {
    ra = Arch::code_address(ra);
    if (ra < kFirstCodeAddress) {
      return stop(ra == 0 ? StopReason::kEndOfStack : StopReason::kImplausibleFrame);
    }
    pc_ = ra;
    sp_ = cfa;
    fp_ = fp;
    is_interrupted_ = false;
    ++steps_;
    return true;
  }

  [[gnu::noinline]] bool stop_at_bad_row(Row::Kind kind) {
    const StopReason why = tables_.failure();
    if (why == StopReason::kUnreadable || why == StopReason::kBudget) {
      return stop(why);
    }
    return stop(kind == Row::Kind::kCorrupt ? StopReason::kCorruptTable
                                            : StopReason::kUnsupportedRule);
  }

  [[gnu::noinline]] bool step_without_table() {
    const StopReason why = tables_.failure() == StopReason::kNotPrepared ? StopReason::kNotPrepared
                                                                          : StopReason::kNoTable;
    std::array<std::uint8_t, Arch::kTrampoline.size()> code{};
    const std::size_t readable = tables_.read_code(pc_, code.data(), code.size());
    if (code == Arch::kTrampoline) {
      return step_signal_frame();
    }
    if (is_interrupted_ && readable == 0) {
      return step_wild_call();
    }
    return options_.strategy == Strategy::kTables ? stop(why) : step_by_fp(why);
  }

  // {caller's fp, return address} at fp. `otherwise`: why the walk ends if there is no such pair.
  [[gnu::noinline]] bool step_by_fp(StopReason otherwise) {
    if (fp_ == 0 && options_.strategy == Strategy::kFramePointers) {
      return stop(StopReason::kEndOfStack);  // the psABI's mark of the outermost frame
    }
    std::uint64_t fp = 0;
    std::uint64_t ra = 0;
    if (fp_ % 8 != 0 || fp_ < sp_ || fp_ - sp_ > kMaxFpFrameBytes || !stack_.load(fp_, fp) ||
        !stack_.load(fp_ + 8, ra)) {
      return stop(otherwise);
    }
    if (fp != 0 && fp <= fp_ && options_.strategy == Strategy::kFramePointers) {
      return stop(otherwise);
    }
    by_fp_ = true;
    return to_caller(ra, fp_ + 16, fp);
  }

  [[gnu::noinline]] bool step_signal_frame() {
    if (++signal_frames_ > kMaxSignalFrames || sp_ % 8 != 0) {
      return stop(StopReason::kImplausibleFrame);
    }
    registers_.clear();
    for (const SavedRegister& saved : Arch::kSignalFrame) {
      std::uint64_t word = 0;
      if (!load(sp_ + saved.offset_bytes, word)) {
        return false;
      }
      registers_.set(saved.number, word);
    }
    by_table_ = true;
    pc_ = registers_[Arch::kPc];
    sp_ = registers_[Arch::kNumbers.sp];
    fp_ = registers_[Arch::kNumbers.fp];
    is_interrupted_ = true;
    steps_ = 0;
    stack_.enter(sp_);
    return true;
  }

  // A call through a null or wild pointer ended here: the return address is where a call leaves it.
  bool step_wild_call() {
    std::uint64_t ra = 0;
    if (Arch::kCallBytes != 0 ? !load(sp_, ra) : !return_register(ra)) {
      return stop(StopReason::kUnreadable);
    }
    by_fp_ = true;  // by convention, not by table
    return to_caller(ra, sp_ + Arch::kCallBytes, fp_);
  }

  [[gnu::noinline]] bool step_general() {
    GeneralStep<Arch, Stack, Tables> general(stack_, tables_);
    Frame frame;
    if (is_interrupted_) {
      frame.registers = registers_;
    } else {
      frame.registers.set(Arch::kPc, pc_);
      frame.registers.set(Arch::kNumbers.sp, sp_);
      frame.registers.set(Arch::kNumbers.fp, fp_);
      frame.is_interrupted = false;
    }
    auto failure = general.to_caller(frame, kNoRegister);
    if (failure == StopReason::kUnsupportedRule && !is_interrupted_ &&
        general.missing() != kNoRegister && follow(general, general.missing(), frame)) {
      failure = general.to_caller(frame, kNoRegister);
    }
    if (failure) {
      return stop(*failure);
    }
    by_table_ = true;
    return to_caller(frame.registers[Arch::kPc], frame.registers[Arch::kNumbers.sp],
                     frame.registers[Arch::kNumbers.fp]);
  }

  // Walks again from the interrupted frame, this time along with the register `wanted`, and arrives
  // at the current frame. At most a few frames as a rule: whoever needs such a register sets it.
  bool follow(GeneralStep<Arch, Stack, Tables>& general, unsigned wanted, Frame& frame) {
    frame.registers = registers_;
    frame.is_interrupted = true;
    for (std::uint32_t i = 0; i < steps_; ++i) {
      if (general.to_caller(frame, wanted)) {
        return false;
      }
    }
    return frame.registers.knows(wanted) && frame.registers[Arch::kPc] == pc_ &&
           frame.registers[Arch::kNumbers.sp] == sp_;
  }

  Registers& registers_;  // of the last interrupted frame
  Stack& stack_;
  Tables& tables_;
  const std::span<std::uint64_t> frames_;
  const Options& options_;
  std::uint64_t pc_ = 0;
  std::uint64_t sp_ = 0;
  std::uint64_t fp_ = 0;
  bool is_interrupted_ = true;
  bool by_table_ = false;
  bool by_fp_ = false;
  std::uint32_t count_ = 0;
  std::uint32_t skipped_ = 0;
  std::uint32_t signal_frames_ = 0;
  std::uint32_t steps_ = 0;  // since the last interrupted frame
  StopReason stop_ = StopReason::kEndOfStack;
};

}  // namespace dial9::unwind
