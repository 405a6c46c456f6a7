// Reads DWARF numbers from memory that may be anything: corrupt, unmapped in this very moment, or
// endless. It copies small windows through a TableSource and keeps one sticky error; a reader that
// has failed yields zeros. Never faults, never reads outside [begin, end), and every byte copied is
// taken from the walk's budget, which bounds the work.
// Specs: DWARF 5, 7.6 (LEB128); LSB 5.0, 10.5 (pointer encodings).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dial9::unwind {

// Where tables are read from: the process, a copy, a test's buffer.
struct TableSource {
  // Copies up to `size` bytes at `address` to `to`; returns how many were readable.
  std::size_t (*copy)(void* self, std::uint64_t address, void* to, std::size_t size);
  void* self;
  std::int64_t budget_bytes;  // what may still be copied

  // All of `size` bytes or nothing; false as well when the budget is used up.
  bool read(std::uint64_t address, void* to, std::size_t size) {
    budget_bytes -= static_cast<std::int64_t>(size);
    return budget_bytes >= 0 && copy(self, address, to, size) == size;
  }
  bool is_exhausted() const { return budget_bytes < 0; }
};

enum class TableError : std::uint8_t { kNone, kCorrupt, kUnsupported, kUnreadable, kBudget };

// The low nibble of a pointer encoding is its format, the next three bits its base.
inline constexpr std::uint8_t kEncodingOmitted = 0xff;
inline constexpr std::uint8_t kEncodingIndirect = 0x80;

class TableReader {
 public:
  TableReader(TableSource& source, std::uint64_t begin, std::uint64_t end)
      : source_(source), position_(begin), end_(end) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t end() const { return end_; }
  bool at_end() const { return position_ >= end_ || !ok(); }
  bool ok() const { return error_ == TableError::kNone; }
  TableError error() const { return error_; }
  void fail(TableError error) {
    if (ok()) {
      error_ = error;
    }
  }
  // The end moves inwards only.
  void narrow(std::uint64_t end) {
    if (end < position_ || end > end_) {
      fail(TableError::kCorrupt);
    } else {
      end_ = end;
      if (window_size_ > end - window_begin_) {
        window_size_ = end - window_begin_;
      }
    }
  }
  void skip(std::uint64_t bytes) {
    if (bytes > end_ - position_) {
      fail(TableError::kCorrupt);
    } else {
      position_ += bytes;
    }
  }

  template <class T>
  T fixed() {
    std::array<std::uint8_t, sizeof(T)> bytes{};
    for (auto& byte : bytes) {
      byte = u8();
    }
    return std::bit_cast<T>(bytes);
  }

  std::uint8_t u8() {
    if (position_ - window_begin_ >= window_size_ && !fill()) {
      return 0;
    }
    return window_[position_++ - window_begin_];
  }

  // Bits above the 64th are dropped; more than 10 bytes are corrupt.
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = u8();
      value |= shift < 64 ? static_cast<std::uint64_t>(byte & 0x7f) << shift : 0;
      if (byte < 0x80) {
        return value;
      }
    }
    fail(TableError::kCorrupt);
    return 0;
  }

  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = u8();
      value |= shift < 64 ? static_cast<std::uint64_t>(byte & 0x7f) << shift : 0;
      if (byte < 0x80) {
        if (shift + 7 < 64 && (byte & 0x40) != 0) {
          value |= ~std::uint64_t{0} << (shift + 7);
        }
        return static_cast<std::int64_t>(value);
      }
    }
    fail(TableError::kCorrupt);
    return 0;
  }

  // A pointer in `encoding`; `data_base` is what data-relative ones count from. Indirect and
  // function- or text-relative pointers are unsupported: unwind tables don't use them for code.
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t data_base);

 private:
  bool fill();

  TableSource& source_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::uint64_t window_begin_ = 0;  // at most position_ once filled
  std::uint64_t window_size_ = 0;
  TableError error_ = TableError::kNone;
  std::array<std::uint8_t, 192> window_;  // unset beyond window_size_
};

}  // namespace dial9::unwind
