// See dwarf_forms.h. Forms of DWARF 2 to 5, and those that g++ and clang had before DWARF 5.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_forms.h"

#include <cstring>

#include "symbolize/dwarf_constants.h"

namespace dial9::symbolize {

std::string_view DwarfBytes::text() {
  const auto* const begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
  const std::size_t size = left() == 0 ? 0 : ::strnlen(begin, left());
  if (size == left()) {
    fail();
    return {};
  }
  at_ += size + 1;
  return {begin, size};
}

std::string_view text_in(std::span<const std::uint8_t> section, std::uint64_t offset) {
  if (offset >= section.size()) return {};
  DwarfBytes bytes(section.subspan(offset));
  return bytes.text();
}

std::uint32_t fixed_size_of(std::uint64_t form, const DwarfFormat& format) {
  switch (form) {
    case dwarf::kFormFlagPresent:
    case dwarf::kFormImplicitConst:
      return 0;
    case dwarf::kFormData1:
    case dwarf::kFormFlag:
    case dwarf::kFormRef1:
    case dwarf::kFormStrx1:
    case dwarf::kFormAddrx1:
      return 1;
    case dwarf::kFormData2:
    case dwarf::kFormRef2:
    case dwarf::kFormStrx2:
    case dwarf::kFormAddrx2:
      return 2;
    case dwarf::kFormStrx3:
    case dwarf::kFormAddrx3:
      return 3;
    case dwarf::kFormData4:
    case dwarf::kFormRef4:
    case dwarf::kFormRefSup4:
    case dwarf::kFormStrx4:
    case dwarf::kFormAddrx4:
      return 4;
    case dwarf::kFormData8:
    case dwarf::kFormRef8:
    case dwarf::kFormRefSig8:
    case dwarf::kFormRefSup8:
      return 8;
    case dwarf::kFormData16:
      return 16;
    case dwarf::kFormAddr:
      return format.address_bytes;
    case dwarf::kFormRefAddr:
      return format.version <= 2 ? format.address_bytes : format.offset_bytes;
    case dwarf::kFormStrp:
    case dwarf::kFormSecOffset:
    case dwarf::kFormStrpSup:
    case dwarf::kFormLineStrp:
    case dwarf::kFormGnuRefAlt:
    case dwarf::kFormGnuStrpAlt:
      return format.offset_bytes;
    default:
      return kVariableSize;
  }
}

void skip_value(DwarfBytes& in, std::uint64_t form, const DwarfFormat& format) {
  if (form == dwarf::kFormIndirect) {
    form = in.uleb();
    // What an implicit constant is isn't there, and one indirection is all there is.
    if (form == dwarf::kFormIndirect || form == dwarf::kFormImplicitConst) return in.fail();
  }
  if (const std::uint32_t size = fixed_size_of(form, format); size != kVariableSize) {
    return in.skip(size);
  }
  switch (form) {
    case dwarf::kFormBlock1:
      return in.skip(in.u8());
    case dwarf::kFormBlock2:
      return in.skip(in.number(2));
    case dwarf::kFormBlock4:
      return in.skip(in.number(4));
    case dwarf::kFormBlock:
    case dwarf::kFormExprloc:
      return in.skip(in.uleb());
    case dwarf::kFormString:
      (void)in.text();
      return;
    case dwarf::kFormSdata:
    case dwarf::kFormUdata:
    case dwarf::kFormRefUdata:
    case dwarf::kFormStrx:
    case dwarf::kFormAddrx:
    case dwarf::kFormLoclistx:
    case dwarf::kFormRnglistx:
    case dwarf::kFormGnuAddrIndex:
    case dwarf::kFormGnuStrIndex:
      (void)in.uleb();
      return;
    default:
      return in.fail();
  }
}

}  // namespace dial9::symbolize
