// Writes unwind tables and stacks into buffers, so that tests choose every byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "unwind/cfi.h"
#include "unwind/table_reader.h"

namespace dial9::unwind::testing {

// A source over bytes that are said to lie at `address`.
class BufferSource {
 public:
  BufferSource(std::uint64_t address, std::vector<std::uint8_t> bytes)
      : address_(address), bytes_(std::move(bytes)) {}

  TableSource source(std::int64_t budget_bytes = 1 << 20) {
    return {&BufferSource::copy, this, budget_bytes};
  }
  std::uint64_t begin() const { return address_; }
  std::uint64_t end() const { return address_ + bytes_.size(); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  static std::size_t copy(void* self, std::uint64_t address, void* to, std::size_t size) {
    const auto& buffer = *static_cast<BufferSource*>(self);
    const std::uint64_t offset = address - buffer.address_;
    if (offset >= buffer.bytes_.size()) {
      return 0;
    }
    const std::size_t part = std::min<std::size_t>(size, buffer.bytes_.size() - offset);
    std::memcpy(to, buffer.bytes_.data() + offset, part);
    return part;
  }

  std::uint64_t address_;
  std::vector<std::uint8_t> bytes_;
};

// One CIE at the buffer's begin and one entry behind it, for [code_begin, code_begin + code_bytes).
class EntryBuilder {
 public:
  std::int8_t data_align = -8;
  std::uint8_t return_column = 16;
  const char* augmentation = "zR";
  std::vector<std::uint8_t> augmentation_data{0x00};  // R: absolute 8-byte pointers
  std::vector<std::uint8_t> initial;
  std::vector<std::uint8_t> instructions;
  std::uint64_t code_begin = 0x10000;
  std::uint64_t code_bytes = 0x1000;

  // The buffer at `address`; entry() is where its entry lies then.
  BufferSource build(std::uint64_t address) {
    std::vector<std::uint8_t> cie;
    put(cie, std::uint32_t{0});
    cie.push_back(1);
    for (const char* letter = augmentation; *letter != '\0'; ++letter) {
      cie.push_back(static_cast<std::uint8_t>(*letter));
    }
    cie.push_back(0);
    cie.push_back(1);  // code alignment
    cie.push_back(static_cast<std::uint8_t>(data_align) & 0x7f);
    cie.push_back(return_column);
    if (augmentation[0] == 'z') {
      cie.push_back(static_cast<std::uint8_t>(augmentation_data.size()));
      cie.insert(cie.end(), augmentation_data.begin(), augmentation_data.end());
    }
    cie.insert(cie.end(), initial.begin(), initial.end());
    std::vector<std::uint8_t> all;
    put(all, static_cast<std::uint32_t>(cie.size()));
    all.insert(all.end(), cie.begin(), cie.end());
    entry_ = address + all.size();
    std::vector<std::uint8_t> fde;
    put(fde, static_cast<std::uint32_t>(all.size() + 4));
    put(fde, code_begin);
    put(fde, code_bytes);
    if (augmentation[0] == 'z') {
      fde.push_back(0);
    }
    fde.insert(fde.end(), instructions.begin(), instructions.end());
    put(all, static_cast<std::uint32_t>(fde.size()));
    all.insert(all.end(), fde.begin(), fde.end());
    return {address, std::move(all)};
  }
  std::uint64_t entry() const { return entry_; }

 private:
  template <class T>
  static void put(std::vector<std::uint8_t>& to, T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  std::uint64_t entry_ = 0;
};

}  // namespace dial9::unwind::testing
