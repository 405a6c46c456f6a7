// See dwarf_file.h: of a build without libdw.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_file.h"

namespace dial9::symbolize {

struct DwarfFile::State {};

DwarfFile::DwarfFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DwarfFile::~DwarfFile() = default;
DwarfFile::DwarfFile(DwarfFile&&) noexcept = default;
DwarfFile& DwarfFile::operator=(DwarfFile&&) noexcept = default;

bool DwarfFile::is_supported() { return false; }

Result<DwarfFile> DwarfFile::open(int, std::size_t) {
  return make_error(ErrorCode::kUnsupported, "built without libdw");
}

std::vector<Frame> DwarfFile::frames(std::uint64_t) { return {}; }

}  // namespace dial9::symbolize
