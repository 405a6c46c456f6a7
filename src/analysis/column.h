// A growable column of plain values in blocks of 64 Ki rows: appending never moves what is there,
// so a load's peak memory is the data plus one block a column, not twice the data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace dial9::analysis {

// Not thread-safe while it is written; any number of readers afterwards. Move-only.
template <class T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kBlockBits = 16;
  static constexpr std::size_t kBlockRows = std::size_t{1} << kBlockBits;

  Column() = default;
  // `rows` values, all `value`.
  Column(std::size_t rows, T value) {
    for (std::size_t i = 0; i < rows; ++i) {
      push_back(value);
    }
  }
  Column(Column&& other) noexcept { *this = std::move(other); }
  Column& operator=(Column&& other) noexcept {
    blocks_ = std::move(other.blocks_);
    size_ = other.size_;
    first_block_rows_ = other.first_block_rows_;
    other.clear();
    return *this;
  }

  void push_back(T value) {
    if (size_ == capacity()) {
      grow();
    }
    (*this)[size_++] = value;
  }

  // No bounds check: `row` < size().
  T& operator[](std::size_t row) { return blocks_[row >> kBlockBits][row & (kBlockRows - 1)]; }
  const T& operator[](std::size_t row) const {
    return blocks_[row >> kBlockBits][row & (kBlockRows - 1)];
  }
  const T& back() const { return (*this)[size_ - 1]; }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t bytes() const { return capacity() * sizeof(T); }

  // Gives the memory back.
  void clear() {
    blocks_.clear();
    size_ = 0;
    first_block_rows_ = 0;
  }

 private:
  // The first block starts small and doubles, so that a trace with hundreds of short columns stays
  // small; all others are whole.
  static constexpr std::size_t kFirstRows = 64;

  std::size_t capacity() const {
    return blocks_.empty() ? 0 : first_block_rows_ + (blocks_.size() - 1) * kBlockRows;
  }

  void grow() {
    if (blocks_.empty()) {
      first_block_rows_ = kFirstRows;
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(kFirstRows));
    } else if (first_block_rows_ < kBlockRows) {
      auto larger = std::make_unique_for_overwrite<T[]>(first_block_rows_ * 2);
      for (std::size_t i = 0; i < size_; ++i) {
        larger[i] = blocks_[0][i];
      }
      blocks_[0] = std::move(larger);
      first_block_rows_ *= 2;
    } else {
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(kBlockRows));
    }
  }

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
  std::size_t first_block_rows_ = 0;
};

}  // namespace dial9::analysis
