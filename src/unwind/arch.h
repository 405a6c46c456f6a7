// What differs between processors: register numbers, where a signal frame keeps the interrupted
// registers, how a return address is cleaned, and how a word is loaded behind the sanitizers' backs
// (a walk reads red zones and poisoned locals on purpose). Both descriptions compile everywhere, so
// that the walk's logic for one is tested on the other; only the loads are native.
// Specs: System V ABI AMD64 3.6.2; DWARF for the Arm 64-bit Architecture, 4.1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace dial9::unwind {

// The part of a processor's description that the table parser needs, as data.
struct RegisterNumbers {
  unsigned sp;
  unsigned fp;
  unsigned ra;     // the return address column
  unsigned extra;  // one more register to follow; kNoRegister: none
};

inline constexpr unsigned kNoRegister = ~0u;

// Where a signal frame keeps one register: bytes from the stack pointer at the trampoline.
struct SavedRegister {
  unsigned number;
  unsigned offset_bytes;
};

// A call instruction, as the bytes before a return address show it.
struct Call {
  bool is_there = false;
  std::uint64_t target = 0;  // 0: indirect
};

struct X86_64 {
  static constexpr RegisterNumbers kNumbers{.sp = 7, .fp = 6, .ra = 16, .extra = kNoRegister};
  static constexpr unsigned kPc = 16;
  static constexpr std::uint64_t kCallBytes = 8;  // a call pushes the return address
  static constexpr std::uint64_t kStackAlign = 8;
  // mov $15,%rax; syscall: a signal trampoline without unwind table.
  static constexpr std::array<std::uint8_t, 9> kTrampoline{0x48, 0xc7, 0xc0, 0x0f, 0,
                                                           0,    0,    0x0f, 0x05};
  // The trampoline's sp points at the ucontext; its registers start 40 bytes in.
  static constexpr std::array<SavedRegister, 17> kSignalFrame{{{8, 40},
                                                               {9, 48},
                                                               {10, 56},
                                                               {11, 64},
                                                               {12, 72},
                                                               {13, 80},
                                                               {14, 88},
                                                               {15, 96},
                                                               {5, 104},
                                                               {4, 112},
                                                               {6, 120},
                                                               {3, 128},
                                                               {1, 136},
                                                               {0, 144},
                                                               {2, 152},
                                                               {7, 160},
                                                               {16, 168}}};

  static constexpr bool kStubsHaveTables = true;

  // What lies before the return address `ra`; `before` are its kCallLookBytes.
  static constexpr std::size_t kCallLookBytes = 7;
  static Call call_before(const std::uint8_t* before, std::uint64_t ra) {
    if (before[2] == 0xe8) {
      std::uint32_t offset = 0;
      for (unsigned i = 0; i < 4; ++i) offset |= std::uint32_t{before[3 + i]} << (8 * i);
      const std::int64_t signed_offset = static_cast<std::int32_t>(offset);
      return {true, ra + static_cast<std::uint64_t>(signed_offset)};
    }
    for (const unsigned bytes : {2u, 3u, 6u, 7u}) {  // ff /2 with each length of its operand
      const std::uint8_t* at = before + kCallLookBytes - bytes;
      if (at[0] == 0xff && (at[1] >> 3 & 7) == 2) return {true, 0};
    }
    return {};
  }

  // Where the PLT stub at `address` takes its destination from: jmp *slot(%rip), maybe behind
  // endbr64 and with a bnd prefix. 0: it is no such stub.
  static constexpr std::size_t kStubBytes = 16;
  static std::uint64_t stub_slot(const std::uint8_t* code, std::uint64_t address) {
    unsigned at = 0;
    if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa) at = 4;
    if (code[at] == 0xf2) ++at;
    if (code[at] != 0xff || code[at + 1] != 0x25) return 0;
    std::uint32_t offset = 0;
    for (unsigned i = 0; i < 4; ++i) offset |= std::uint32_t{code[at + 2 + i]} << (8 * i);
    const std::int64_t signed_offset = static_cast<std::int32_t>(offset);
    return address + at + 6 + static_cast<std::uint64_t>(signed_offset);
  }

  static std::uint64_t code_address(std::uint64_t ra) { return ra; }
  static std::uint64_t load_word(std::uint64_t address) {
    std::uint64_t value;
    asm volatile("movq (%1), %0" : "=r"(value) : "r"(address));
    return value;
  }
};

struct Aarch64 {
  static constexpr RegisterNumbers kNumbers{.sp = 31, .fp = 29, .ra = 30, .extra = kNoRegister};
  static constexpr unsigned kPc = 32;
  static constexpr std::uint64_t kCallBytes = 0;  // a call sets x30
  static constexpr std::uint64_t kStackAlign = 8;
  // mov x8, #139; svc #0
  static constexpr std::array<std::uint8_t, 8> kTrampoline{0x68, 0x11, 0x80, 0xd2,
                                                           0x01, 0,    0,    0xd4};
  // siginfo (128 bytes), then the ucontext, whose mcontext starts 176 bytes in with fault_address.
  static constexpr std::array<SavedRegister, 4> kSignalFrame{{{29, 128 + 176 + 8 + 29 * 8},
                                                              {30, 128 + 176 + 8 + 30 * 8},
                                                              {31, 128 + 176 + 8 + 31 * 8},
                                                              {32, 128 + 176 + 8 + 32 * 8}}};

  // Linkers give the procedure linkage table no unwind table. An entry of it:
  //   [bti c] adrp x16 · ldr x17, [x16] · add x16, x16 · [autia1716] br x17
  // leaves x30 and sp alone; the first entry pushes x16 and x30 before its adrp.
  static constexpr bool kStubsHaveTables = false;
  static constexpr std::size_t kStubBefore = 6;  // instructions of the window before the pc
  using StubWindow = std::array<std::uint32_t, kStubBefore + 7>;

  // What a linkage stub has pushed when it is about to run code[kStubBefore]; none: it is no stub.
  static std::optional<std::uint64_t> stub_pushed_bytes(const StubWindow& code) {
    constexpr std::uint32_t kBti = 0xd503'245f;
    constexpr std::uint32_t kPush = 0xa9bf'7bf0;  // stp x16, x30, [sp, #-16]!
    for (std::size_t adrp = kStubBefore - 4; adrp <= kStubBefore + 2; ++adrp) {
      const std::size_t branch = stub_branch(code, adrp);
      if (branch < kStubBefore) continue;
      const bool pushes = code[adrp - 1] == kPush;
      if (adrp <= kStubBefore) return pushes ? 16 : 0;
      std::size_t start = pushes ? adrp - 1 : adrp;
      if (code[start - 1] == kBti) --start;
      return start <= kStubBefore ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    return std::nullopt;
  }
  // Where the stub branches whose adrp is at `at`; 0: there is none.
  static std::size_t stub_branch(const StubWindow& code, std::size_t at) {
    const bool is_stub = (code[at] & 0x9f00'001f) == 0x9000'0010 &&
                         (code[at + 1] & 0xffc0'03ff) == 0xf940'0211 &&
                         (code[at + 2] & 0xffc0'03ff) == 0x9100'0210;
    if (!is_stub) return 0;
    const std::size_t branch = code[at + 3] == 0xd503'219f ? at + 4 : at + 3;  // autia1716
    return code[branch] == 0xd61f'0220 ? branch : 0;
  }

  static constexpr std::size_t kCallLookBytes = 4;
  static Call call_before(const std::uint8_t* before, std::uint64_t ra) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) word |= std::uint32_t{before[i]} << (8 * i);
    if ((word & 0xfc00'0000) == 0x9400'0000) {  // bl: 26 bits of words, signed
      const std::int64_t offset = static_cast<std::int32_t>(word << 6) >> 4;
      return {true, ra - 4 + static_cast<std::uint64_t>(offset)};
    }
    return {(word & 0xfeff'f800) == 0xd63f'0800 || (word & 0xffff'fc1f) == 0xd63f'0000, 0};
  }

  static constexpr std::size_t kStubBytes = 4;
  static std::uint64_t stub_slot(const std::uint8_t*, std::uint64_t) { return 0; }

  // Drops a pointer authentication code: user addresses have 48 bits.
  static std::uint64_t code_address(std::uint64_t ra) { return ra & 0x0000'ffff'ffff'ffff; }
  static std::uint64_t load_word(std::uint64_t address) {
    std::uint64_t value;
    asm volatile("ldr %0, [%1]" : "=r"(value) : "r"(address));
    return value;
  }
};

}  // namespace dial9::unwind
