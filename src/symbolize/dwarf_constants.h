// Numbers of DWARF 2 to 5 that we read: <dwarf.h> of elfutils has them, but our own readers build
// without it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::symbolize::dwarf {

// What an entry is.
inline constexpr std::uint64_t kTagLexicalBlock = 0x0b;
inline constexpr std::uint64_t kTagCompileUnit = 0x11;
inline constexpr std::uint64_t kTagInlinedSubroutine = 0x1d;
inline constexpr std::uint64_t kTagCatchBlock = 0x25;
inline constexpr std::uint64_t kTagSubprogram = 0x2e;
inline constexpr std::uint64_t kTagTryBlock = 0x32;
inline constexpr std::uint64_t kTagNamespace = 0x39;
inline constexpr std::uint64_t kTagPartialUnit = 0x3c;
inline constexpr std::uint64_t kTagSkeletonUnit = 0x4a;

// Attributes.
inline constexpr std::uint64_t kAtSibling = 0x01;
inline constexpr std::uint64_t kAtLowPc = 0x11;
inline constexpr std::uint64_t kAtHighPc = 0x12;
inline constexpr std::uint64_t kAtRanges = 0x55;

// How values are written.
inline constexpr std::uint64_t kFormAddr = 0x01;
inline constexpr std::uint64_t kFormBlock2 = 0x03;
inline constexpr std::uint64_t kFormBlock4 = 0x04;
inline constexpr std::uint64_t kFormData2 = 0x05;
inline constexpr std::uint64_t kFormData4 = 0x06;
inline constexpr std::uint64_t kFormData8 = 0x07;
inline constexpr std::uint64_t kFormString = 0x08;
inline constexpr std::uint64_t kFormBlock = 0x09;
inline constexpr std::uint64_t kFormBlock1 = 0x0a;
inline constexpr std::uint64_t kFormData1 = 0x0b;
inline constexpr std::uint64_t kFormFlag = 0x0c;
inline constexpr std::uint64_t kFormSdata = 0x0d;
inline constexpr std::uint64_t kFormStrp = 0x0e;
inline constexpr std::uint64_t kFormUdata = 0x0f;
inline constexpr std::uint64_t kFormRefAddr = 0x10;
inline constexpr std::uint64_t kFormRef1 = 0x11;
inline constexpr std::uint64_t kFormRef2 = 0x12;
inline constexpr std::uint64_t kFormRef4 = 0x13;
inline constexpr std::uint64_t kFormRef8 = 0x14;
inline constexpr std::uint64_t kFormRefUdata = 0x15;
inline constexpr std::uint64_t kFormIndirect = 0x16;
inline constexpr std::uint64_t kFormSecOffset = 0x17;
inline constexpr std::uint64_t kFormExprloc = 0x18;
inline constexpr std::uint64_t kFormFlagPresent = 0x19;
inline constexpr std::uint64_t kFormStrx = 0x1a;
inline constexpr std::uint64_t kFormAddrx = 0x1b;
inline constexpr std::uint64_t kFormRefSup4 = 0x1c;
inline constexpr std::uint64_t kFormStrpSup = 0x1d;
inline constexpr std::uint64_t kFormData16 = 0x1e;
inline constexpr std::uint64_t kFormLineStrp = 0x1f;
inline constexpr std::uint64_t kFormRefSig8 = 0x20;
inline constexpr std::uint64_t kFormImplicitConst = 0x21;
inline constexpr std::uint64_t kFormLoclistx = 0x22;
inline constexpr std::uint64_t kFormRnglistx = 0x23;
inline constexpr std::uint64_t kFormRefSup8 = 0x24;
inline constexpr std::uint64_t kFormStrx1 = 0x25;
inline constexpr std::uint64_t kFormStrx2 = 0x26;
inline constexpr std::uint64_t kFormStrx3 = 0x27;
inline constexpr std::uint64_t kFormStrx4 = 0x28;
inline constexpr std::uint64_t kFormAddrx1 = 0x29;
inline constexpr std::uint64_t kFormAddrx2 = 0x2a;
inline constexpr std::uint64_t kFormAddrx3 = 0x2b;
inline constexpr std::uint64_t kFormAddrx4 = 0x2c;
inline constexpr std::uint64_t kFormGnuAddrIndex = 0x1f01;
inline constexpr std::uint64_t kFormGnuStrIndex = 0x1f02;
inline constexpr std::uint64_t kFormGnuRefAlt = 0x1f20;
inline constexpr std::uint64_t kFormGnuStrpAlt = 0x1f21;

// Of a line table: operations, and what a file's entry holds.
inline constexpr std::uint8_t kLineExtended = 0;
inline constexpr std::uint8_t kLineCopy = 1;
inline constexpr std::uint8_t kLineAdvancePc = 2;
inline constexpr std::uint8_t kLineAdvanceLine = 3;
inline constexpr std::uint8_t kLineSetFile = 4;
inline constexpr std::uint8_t kLineConstAddPc = 8;
inline constexpr std::uint8_t kLineFixedAdvancePc = 9;
inline constexpr std::uint8_t kLineEndSequence = 1;  // extended ones
inline constexpr std::uint8_t kLineSetAddress = 2;
inline constexpr std::uint8_t kLineDefineFile = 3;
inline constexpr std::uint64_t kLinePath = 1;
inline constexpr std::uint64_t kLineDirectory = 2;

}  // namespace dial9::symbolize::dwarf
